"""``opprof prepare``: build the torch observer in advance, for images without a compiler."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.addresses import shown
from pytest_opprof.cli.terminated import terminated_as_interrupted
from pytest_opprof.errors import CaptureUnavailableError

if TYPE_CHECKING:
    from pytest_opprof.capture.observer_build import Part
    from pytest_opprof.capture.torch_build import TorchBuild

HELP = "build the torch observer now, rather than in the first profiled test"
EXAMPLE = "opprof prepare --torch 2.13.0 --output observer"

_COMPILED_AGAINST = frozenset({"torch/version.py", "torch/lib/libc10.so", "torch/lib/libtorch_cpu.so"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--torch",
        metavar="VERSION|DIR",
        help="build for another torch than the installed one: a folder that has it (site-packages, an "
        "unpacked wheel), or a release such as 2.15.0, whose wheel pip downloads",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        help="put the observer into DIR; a machine without a compiler takes it by OPPROF_CACHE_DIR=DIR",
    )


def run(args: argparse.Namespace) -> int:
    """Build observer and emitter unless they exist, and print where they are."""
    from pytest_opprof.capture.observer_build import PARTS
    from pytest_opprof.experiment.place import Place

    with terminated_as_interrupted(), Place("torch") as work:
        build = _torch(args.torch, work.folder)
        for part in PARTS:
            _prepare(build, part, args.output)
    if args.output:
        print(f"On a machine without a compiler: OPPROF_CACHE_DIR={args.output.resolve()}")
    return 0


def _torch(named: str | None, work: Path) -> TorchBuild:
    from pytest_opprof.capture.torch_build import torch_build  # slow, and asked for here only

    installed = importlib.util.find_spec("torch")
    here = Path(installed.origin).parent if installed and installed.origin else None
    if named is None:
        if here is None:
            raise CaptureUnavailableError("torch is not installed here: name one with --torch VERSION|DIR")
        return torch_build(here)
    folder = Path(named)
    if folder.is_dir():
        return torch_build(folder / "torch" if (folder / "torch").is_dir() else folder)
    if "/" in named:
        raise CaptureUnavailableError(f"--torch {named}: there is no such folder")
    return torch_build(_downloaded(named, work))


def _downloaded(version: str, work: Path) -> Path:
    """Download a release's wheel for this interpreter, and unpack the part that a compiler reads."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    print(f"pip downloads torch {version} ...", file=sys.stderr, flush=True)
    done = subprocess.run(
        [*command, "--dest", str(work), f"torch=={version}"], capture_output=True, text=True, check=False
    )
    wheels = list(work.glob("torch-*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [shown(line) for line in done.stderr.splitlines() if line.startswith("ERROR")]
        said = lines[-1] if lines else f"it ended with status {done.returncode}"
        raise CaptureUnavailableError(f"pip cannot download torch {version}: {said}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        for name in wheel.namelist():
            if name.startswith("torch/include/") or name in _COMPILED_AGAINST:
                wheel.extract(name, work)
    return work / "torch"


def _prepare(build: TorchBuild, part: Part, output: Path | None) -> None:
    from pytest_opprof.capture.folders import make_private
    from pytest_opprof.capture.observer_build import found_or_built, observer_for

    started = time.perf_counter()
    if output is None:
        observer = observer_for(build, part=part)
    else:
        try:
            output.mkdir(parents=True, exist_ok=True)  # all may read it, like an image's other folders
            output = make_private(output)
        except OSError as error:
            raise CaptureUnavailableError(f"--output {output} cannot keep an observer: {error}") from error
        observer = found_or_built(build, output, part=part, serves_any=True)
    how = f"built in {time.perf_counter() - started:.1f} s" if observer.was_built else "was there already"
    print(f"{part} for torch {build.version} {how}: {observer.path}")
