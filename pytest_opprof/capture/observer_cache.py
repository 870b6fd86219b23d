"""Compiled observers on disk, used only while they match their recorded digest."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_opprof.capture.folders import is_private_file
from pytest_opprof.errors import CaptureUnavailableError
from pytest_opprof.locks import hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one observer is kept: the shared object, and the record of its digest and compiler.

    Attributes:
        folder: Shared by all observers.
        key: Stands for everything that the compiled code depends on.
    """

    folder: Path
    key: str

    @property
    def path(self) -> Path:
        """The shared object."""
        return self.folder / f"{self.key}.so"

    @property
    def _record(self) -> Path:
        return self.folder / f"{self.key}.sha256"

    def has(self, made_by: str | None) -> bool:
        """Whether an intact observer is here.

        Args:
            made_by: The compiler that would make it (`cxx.identity`): an observer of another does not count.
                None if there is no compiler; then any observer counts.
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
        """Move a shared object here, from a folder within this one.

        Args:
            made_by: Its compiler; "" if it serves any compiler.

        Raises:
            OSError: It cannot be moved.
        """
        new_record = made.with_name("sha256")
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        new_record.write_text(f"{digest}\n{made_by}", encoding="utf-8")
        for file in (made, new_record):
            # Whatever the umask is: a file that others may write is not loaded.
            file.chmod(0o600 if made_by else 0o644)
        made.replace(self.path)
        new_record.replace(self._record)  # last: without a record it does not count

    def forget(self) -> None:
        """Remove it, so that it is compiled again.

        Raises:
            CaptureUnavailableError: It cannot be removed.
        """
        try:
            self._record.unlink(missing_ok=True)
        except OSError as error:
            raise CaptureUnavailableError(
                f"{self.path} can neither be loaded nor removed: {error}"
            ) from error

    @contextlib.contextmanager
    def locked(self, *, limit_s: float) -> Iterator[None]:
        """Lock this place, as whoever compiles does.

        Args:
            limit_s: How long to wait for another process, in seconds.

        Raises:
            CaptureUnavailableError: Another process holds the lock for longer.
            OSError: The lock's file cannot be made.
        """
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
