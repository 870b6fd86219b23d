"""Writes the C source of pytest_opprof._collector: ``build_collector.py opprof.h out.c``."""

import sys
from pathlib import Path

from cffi import FFI


def control_plane(header: str) -> str:
    """The declarations between the cffi marks: the one text that both compilers read."""
    return header.partition("/* cffi: begin */")[2].partition("/* cffi: end */")[0]


def main(header_path: str, out_path: str) -> None:
    """Read the header and write the source."""
    ffi = FFI()
    ffi.cdef(control_plane(Path(header_path).read_text(encoding="utf-8")))
    ffi.set_source("pytest_opprof._collector", '#include "opprof.h"\n')
    ffi.emit_c_code(out_path)


main(*sys.argv[1:])
