"""What is compiled against the user's torch: once for each torch, kept, checked before it is loaded.

The observer sees torch's ops for us, the emitter tells other tools of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pytest_opprof.capture.folders import is_private_file, make_private, observer_folders
from pytest_opprof.errors import CaptureUnavailableError
from pytest_opprof.locks import hold

Part: TypeAlias = Literal["observer", "emitter"]

_COMPILERS: Final = ("c++", "g++", "clang++")
_HEADERS: Final = (
    "call.h",
    "counters.h",
    "emit.h",
    "event.h",
    "fields.h",
    "clock.h",
    "names.h",
    "record.h",
    "thread_table.h",
    "unwinding.h",
    "write_inputs.h",
    "write_keywords.h",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """A compiled observer or emitter.

    Attributes:
        path: The shared object.
        was_built: It was compiled just now, rather than found.
    """

    path: Path
    was_built: bool


def compiler() -> str | None:
    """The C++ compiler that would be used: ``$CXX``, or the first of the usual names on PATH."""
    named = os.environ.get("CXX", "").strip()
    if named:
        return named if shutil.which(_words(named)[0]) else None
    return next(filter(None, map(shutil.which, _COMPILERS)), None)


def _words(command: str) -> list[str]:
    """A command's words as a shell sees them; the whole where a shell sees none, for want of a quote."""
    try:
        return shlex.split(command) or [command]
    except ValueError:
        return [command]


def library_folder() -> Path:
    """Where libopprof.so and the observer's source were installed."""
    from pytest_opprof import _collector  # noqa: PLC0415  # imports native code

    return Path(_collector.__file__).parent


def observer_for(torch: Any, *, part: Part = "observer") -> Observer:
    """The observer for this torch, or the emitter, compiled if need be.

    Several processes may ask at once: one compiles, the others wait for it.

    Raises:
        CaptureUnavailableError: There is no C++ compiler, it failed, or no folder can keep the result.
    """
    key = _key(torch, part)
    for folder in observer_folders():
        found = _kept(folder, key) if make_private(folder) else None
        if found:
            return Observer(path=found, was_built=False)
    for folder in observer_folders():
        if make_private(folder):
            return _found_or_built(torch, folder, key, part)
    raise CaptureUnavailableError(
        "no folder can keep the compiled torch observer: set OPPROF_CACHE_DIR to one that only you can write"
    )


def _found_or_built(torch: Any, folder: Path, key: str, part: Part) -> Observer:
    try:
        with _locked(folder / f"{key}.lock"):
            found = _kept(folder, key)
            return Observer(path=found or _build(torch, folder, key, part), was_built=found is None)
    except OSError as error:
        raise CaptureUnavailableError(f"the torch {part} cannot be built in {folder}: {error}") from error


def is_kept(torch: Any) -> bool:
    """Whether the observer for this torch was compiled before."""
    key = _key(torch, "observer")
    return any(_kept(folder, key) for folder in observer_folders() if make_private(folder))


def _source_folder() -> Path:
    return library_folder() / "native"


def _key(torch: Any, part: Part) -> str:
    """Everything the compiled code depends on; a torch built anew gets an observer built anew."""
    digest = hashlib.sha256()
    for fact in (torch.__version__, str(torch.version.git_version), str(_abi(torch)), str(library_folder())):
        digest.update(fact.encode() + b"\0")
    for name in (f"{part}.cpp", *_HEADERS):
        digest.update((_source_folder() / name).read_bytes())
    return f"{part}-{re.sub(r'[^0-9A-Za-z.]', '_', torch.__version__)}-{digest.hexdigest()[:16]}"


def _abi(torch: Any) -> int:
    return int(torch._C._GLIBCXX_USE_CXX11_ABI)  # noqa: SLF001  # torch.compiled_with_cxx11_abi imports half of torch


def _standard(torch: Any) -> str:
    """The C++ standard that torch itself was compiled with: its headers are known to work with that."""
    said = re.search(r"C\+\+ Version: (\d{4})", torch.__config__.show())
    return {"2017": "c++17", "2020": "c++20", "2023": "c++23"}.get(said[1] if said else "", "c++20")


def _kept(folder: Path, key: str) -> Path | None:
    """A finished build whose bytes are still those that were recorded when it was made."""
    path, record = folder / f"{key}.so", folder / f"{key}.sha256"
    try:
        if not (is_private_file(path) and is_private_file(record)):
            return None
        recorded = record.read_text(encoding="ascii").strip()
        return path if hashlib.sha256(path.read_bytes()).hexdigest() == recorded else None
    except OSError:
        return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        hold(descriptor)
        yield
    finally:
        os.close(descriptor)


def compile_command(torch: Any, program: str, source: Path, out: Path) -> list[str]:
    """How a source is compiled against this torch, as the observer is."""
    root = Path(torch.__file__).parent
    return [
        *_words(program),
        "-O2",
        "-DNDEBUG",  # without it RecordFunction has a member more, and inputs() throws in every callback
        f"-D_GLIBCXX_USE_CXX11_ABI={_abi(torch)}",
        f"-std={_standard(torch)}",
        "-fPIC",
        "-shared",
        f"-I{_source_folder()}",
        f"-I{root / 'include'}",
        f"-I{root / 'include/torch/csrc/api/include'}",
        str(source),
        "-o",
        str(out),
        f"-L{root / 'lib'}",
        "-ltorch_cpu",  # torch loads its libraries privately: without this its symbols are not found
        "-lc10",
        f"-L{library_folder()}",
        "-l:libopprof.so",
        f"-Wl,-rpath,{library_folder()}",
    ]


def _build(torch: Any, folder: Path, key: str, part: Part) -> Path:
    program = compiler()
    if program is None:
        raise CaptureUnavailableError(
            f"no C++ compiler was found to build the torch {part} (tried $CXX, c++, g++, clang++): install "
            "one (Debian, Ubuntu: apt install g++), or run `opprof prepare` where there is one and keep its "
            "cache folder"
        )
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as work:
        out = Path(work) / "out.so"
        done = subprocess.run(
            compile_command(torch, program, _source_folder() / f"{part}.cpp", out),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise CaptureUnavailableError(
                f"{program} cannot compile the torch {part} for torch {torch.__version__}: {_fault(done)}"
            )
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        path, record = folder / f"{key}.so", folder / f"{key}.sha256"
        new_record = Path(work) / "sha256"
        new_record.write_text(digest, encoding="ascii")
        for made in (out, new_record):
            made.chmod(0o600)  # whatever the umask is: what others may write is not loaded
        out.replace(path)
        new_record.replace(record)  # last: what has no record is not there
    return path


def _fault(done: subprocess.CompletedProcess[str]) -> str:
    """The line of a failed compiler's output that says most, in one line of bearable length."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    said = next((line for line in lines if "error" in line), lines[0] if lines else "")
    return said[:300] or f"it ended with status {done.returncode} and no message"
