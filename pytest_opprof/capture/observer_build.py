"""Compile against the user's torch, once for each torch; keep the result, and check it before loading.

The observer sees torch's ops for us; the emitter reports them to other tools.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pytest_opprof.capture import cxx
from pytest_opprof.capture.folders import direct, is_private_file, make_private, objection, observer_folders
from pytest_opprof.capture.injection import library_path
from pytest_opprof.capture.torch_build import SUPPORTED, TorchBuild, torch_build
from pytest_opprof.errors import CaptureUnavailableError
from pytest_opprof.locks import hold

Part: TypeAlias = Literal["observer", "emitter"]

PARTS: Final[tuple[Part, ...]] = ("observer", "emitter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one observer is kept: the shared object, and the record of its digest and compiler."""

    folder: Path  # shared by all observers
    key: str  # stands for everything that the compiled code depends on

    @property
    def path(self) -> Path:
        """The shared object."""
        return self.folder / f"{self.key}.so"

    @property
    def _record(self) -> Path:
        return self.folder / f"{self.key}.sha256"

    def has(self, made_by: str | None) -> bool:
        """Whether an intact observer is here, of this compiler (`cxx.identity`).

        Without a compiler, any observer counts.
        """
        try:
            if not (is_private_file(self.path) and is_private_file(self._record)):
                return False
            digest, _, maker = self._record.read_text(encoding="utf-8").partition("\n")
            found = hashlib.sha256(self.path.read_bytes()).hexdigest()
        except (OSError, UnicodeDecodeError):
            return False
        return found == digest and (not maker or made_by is None or maker == made_by)

    def keep(self, made: Path, *, made_by: str) -> None:
        """Move a shared object here, from a folder within this one; "" stands for any compiler."""
        new_record = made.with_name("sha256")
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        new_record.write_text(f"{digest}\n{made_by}", encoding="utf-8")
        for file in (made, new_record):
            # Whatever the umask is: a file that others may write is not loaded.
            file.chmod(0o600 if made_by else 0o644)
        made.replace(self.path)
        new_record.replace(self._record)  # last: without a record it does not count

    def forget(self) -> None:
        """Remove it, so that it is compiled again."""
        try:
            self._record.unlink(missing_ok=True)
        except OSError as error:
            raise CaptureUnavailableError(
                f"{self.path} can neither be loaded nor removed: {error}"
            ) from error

    @contextlib.contextmanager
    def locked(self, *, limit_s: float) -> Iterator[None]:
        """Lock this place, as whoever compiles does."""
        path = self.folder / f"{self.key}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                hold(descriptor, limit_s=limit_s)
            except TimeoutError as error:
                raise CaptureUnavailableError(f"{path}, the lock on compiling: {error.strerror}") from error
            yield
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """A compiled observer or emitter."""

    place: Place
    was_built: bool  # it was compiled just now, rather than found

    @property
    def path(self) -> Path:
        """The shared object."""
        return self.place.path


def build_of(torch: Any) -> TorchBuild:
    """The build of an imported torch."""
    return torch_build(Path(torch.__file__).parent)


def load(torch: Any, *, part: Part = "observer") -> ctypes.PyDLL:
    """Load the observer or emitter for this torch, compiled if necessary.

    A kept one that cannot be loaded is compiled again. A `CaptureUnavailableError` says why there is none.
    """
    while True:
        observer = observer_for(build_of(torch), part=part)
        try:
            return ctypes.PyDLL(str(observer.path))
        except OSError as error:
            observer.place.forget()
            if observer.was_built:
                raise CaptureUnavailableError(
                    f"the torch {part} {observer.path} cannot be loaded: {error}"
                ) from error


def what_it_waits_for(torch: Any) -> str | None:
    """A line to show while `load` compiles the observer; None if nothing needs compiling."""
    program = cxx.compiler()
    if program is None or kept(build_of(torch)) is not None:
        return None
    return (
        f"opprof: compiling the observer for torch {torch.__version__} with {program}, once for this torch "
        f"(some 10 s, {cxx.time_limit_s():g} s at most)"
    )


def observer_for(build: TorchBuild, *, part: Part = "observer") -> Observer:
    """The observer or emitter for this torch, compiled if necessary.

    Several processes may ask at once: one compiles, the others wait for it.
    """
    found = kept(build, part=part)
    if found is not None:
        return Observer(place=found, was_built=False)
    reasons = []
    for folder in observer_folders():
        try:
            private = make_private(folder)
        except OSError as error:
            reasons.append(str(error))
        else:
            return found_or_built(build, private, part=part)
    raise CaptureUnavailableError(
        f"no folder can keep the compiled torch {part} ({reasons[0]}): set OPPROF_CACHE_DIR to one that only "
        "you can write"
    )


def kept(build: TorchBuild, *, part: Part = "observer") -> Place | None:
    """The place of one that was compiled before and is usable; None if there is none."""
    program = cxx.compiler()
    maker = cxx.identity(program) if program else None
    key = _key(build, part)
    places = (Place(folder=folder, key=key) for folder in _direct_folders() if objection(folder) is None)
    return next((place for place in places if place.has(maker)), None)


def _direct_folders() -> Iterator[Path]:
    for folder in observer_folders():
        with contextlib.suppress(OSError):
            yield direct(folder)


def found_or_built(build: TorchBuild, folder: Path, *, part: Part, serves_any: bool = False) -> Observer:
    """The observer or emitter in a folder that only this user can write, compiled if necessary.

    If it `serves_any`, it is also for machines with other compilers.
    """
    program = cxx.compiler()
    if program is None:
        raise CaptureUnavailableError(
            f"no C++ compiler was found to build the torch {part} (tried $CXX, c++, g++, clang++): install "
            "one (Debian, Ubuntu: apt install g++), or run `opprof prepare --output DIR` where there is one, "
            "and set OPPROF_CACHE_DIR to a copy of DIR here"
        )
    place = Place(folder=folder, key=_key(build, part))
    maker = cxx.identity(program)
    try:
        with place.locked(limit_s=2 * cxx.time_limit_s()):
            if place.has(maker):
                return Observer(place=place, was_built=False)
            for left in folder.glob(f"build-{place.key}-*"):  # by a process killed while it held the lock
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix=f"build-{place.key}-") as work:
                made = _compile(build, part, program, Path(work))
                place.keep(made, made_by="" if serves_any else maker)
    except OSError as error:
        raise CaptureUnavailableError(f"the torch {part} cannot be built in {folder}: {error}") from error
    return Observer(place=place, was_built=True)


def _source_folder() -> Path:
    return library_path().parent / "native"


def _key(build: TorchBuild, part: Part) -> str:
    """A key of everything the compiled code depends on, so that a rebuilt torch gets a new observer."""
    digest = hashlib.sha256()
    for fact in (build.version, build.commit, build.digest):
        digest.update(fact.encode() + b"\0")
    for source in (_source_folder() / f"{part}.cpp", *sorted(_source_folder().rglob("*.h"))):
        digest.update(source.read_bytes())
    return f"{part}-{re.sub(r'[^0-9A-Za-z.]', '_', build.version)}-{digest.hexdigest()[:16]}"


def compile_command(build: TorchBuild, program: str, source: Path, out: Path) -> list[str]:
    """The command that compiles a source against this torch.

    The result keeps no path to its libraries: they are loaded before it, wherever they are by then.
    """
    return [
        *cxx.words(program),
        "-O2",
        "-DNDEBUG",  # without it RecordFunction has one more member, and inputs() throws in every callback
        f"-D_GLIBCXX_USE_CXX11_ABI={int(build.cxx11_abi)}",
        f"-std={build.standard}",
        "-fPIC",
        "-shared",
        f"-I{_source_folder()}",
        f"-I{build.folder / 'include'}",
        f"-I{build.folder / 'include/torch/csrc/api/include'}",
        str(source),
        "-o",
        str(out),
        f"-L{build.folder / 'lib'}",
        "-ltorch_cpu",  # torch loads its libraries privately: without this its symbols are not found
        "-lc10",
        f"-L{library_path().parent}",
        "-l:libopprof.so",
    ]


def _compile(build: TorchBuild, part: Part, program: str, folder: Path) -> Path:
    out = folder / "out.so"
    command = compile_command(build, program, _source_folder() / f"{part}.cpp", out)
    fault = cxx.fault_of(command, out, limit_s=cxx.time_limit_s())
    if fault is None:
        return out
    said = f"{program} cannot compile the torch {part} for torch {build.version}"
    if cxx.lacks_standard(program, build.standard, folder=folder):
        raise CaptureUnavailableError(
            f"{said}: it lacks -std={build.standard}, which this torch's headers need: install a newer one "
            "(g++ 11 or clang++ 14 at least), or set CXX to one"
        )
    advice = f" (this release supports torch {SUPPORTED}: take a newer pytest-opprof)"
    raise CaptureUnavailableError(f"{said}: {fault}{'' if build.is_tried else advice}")
