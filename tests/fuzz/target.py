"""Fuzz targets: each is one reader of ours, given foreign bytes."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.errors import OpprofError

CORPORA: Final = Path(__file__).parent / "corpus"
# Prefix of inputs that once crashed a reader. The reader accepts all other inputs of a corpus.
FOUND: Final = "found-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reader.

    Attributes:
        name: As the command line and the folder of its corpus say it.
        read: Reads bytes, and does what a command does with what it got; the folder is its own, and what was
            left there is from the input before.
        words: What an input may have to say for the reader to go on.
    """

    name: str
    read: Callable[[bytes, Path], None]
    words: tuple[str, ...] = ()

    def attempt(self, data: bytes, folder: Path) -> bool:
        """Whether the reader takes these bytes; it may refuse them by an error of ours, and by no other.

        Raises:
            Exception: A finding: another error, or what was read does not hold together.
        """
        try:
            self.read(data, folder)
        except OpprofError:
            return False
        return True

    def corpus(self) -> list[Path]:
        """The repository's inputs."""
        return sorted(path for path in (CORPORA / self.name).iterdir() if path.is_file())


def put(folder: Path, name: str, data: bytes) -> Path:
    """Write a file with these bytes, in place of the one before."""
    path = folder / name
    path.write_bytes(data)
    return path


@contextlib.contextmanager
def bounded(*, seconds: float, mebibytes: int) -> Iterator[None]:
    """Fail if the block takes too much processor time, or too much memory beyond the earlier peak.

    Args:
        seconds: Of all threads together: another process on the machine does not count.
        mebibytes: Above the highest resident memory so far.

    Raises:
        AssertionError: It took more.
    """
    began, before = time.process_time(), _most_kibibytes()
    yield
    took, more = time.process_time() - began, (_most_kibibytes() - before) / 1_024
    assert took <= seconds, f"this took {took:.1f} s of processor time, and {seconds:g} s are allowed"
    assert more <= mebibytes, f"this took {more:.0f} MiB more memory, and {mebibytes} MiB are allowed"


def _most_kibibytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextlib.contextmanager
def refusals_end_here() -> Iterator[None]:
    """Using a value that was read may be refused as well, without skipping the other uses."""
    with contextlib.suppress(OpprofError):
        yield
