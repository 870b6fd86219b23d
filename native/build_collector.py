"""Generates the C source of pytest_opprof._collector: ``build_collector.py out.c header...``."""

import sys
from pathlib import Path

from cffi import FFI


def control_plane(header: str) -> str:
    """The declarations between the cffi marks, which cffi and the C compiler both read."""
    return header.partition("/* cffi: begin */")[2].partition("/* cffi: end */")[0]


def main(out_path: str, *header_paths: str) -> None:
    """Write the source, from the headers."""
    ffi = FFI()
    for path in header_paths:
        ffi.cdef(control_plane(Path(path).read_text(encoding="utf-8")))
    ffi.set_source("pytest_opprof._collector", '#include "opprof.h"\n')
    ffi.emit_c_code(out_path)


main(*sys.argv[1:])
