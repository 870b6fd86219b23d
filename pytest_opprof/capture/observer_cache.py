"""Compiled observers on disk: found again only while they are what was recorded of them."""

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
    """Where one observer is kept: the shared object, and the record that says it is whole.

    Attributes:
        folder: Of all observers.
        key: Everything that the compiled code depends on.
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
        """Whether a sound one is here.

        Args:
            made_by: The compiler that would make it (`cxx.identity`): one that another made is not found.
                None where there is no compiler; then any is better than none.
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
        """Take over a shared object that lies in a folder within this one.

        Args:
            made: The file, which is moved.
            made_by: The compiler; "" for one that serves whatever compiler there is.

        Raises:
            OSError: It cannot be kept.
        """
        new_record = made.with_name("sha256")
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        new_record.write_text(f"{digest}\n{made_by}", encoding="utf-8")
        for file in (made, new_record):
            file.chmod(
                0o600 if made_by else 0o644
            )  # whatever the umask is: what others may write is not loaded
        made.replace(self.path)
        new_record.replace(self._record)  # last: what has no record is not there

    def forget(self) -> None:
        """Let it be made anew.

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
        """Have this place alone; whoever compiles holds it so long.

        Args:
            limit_s: How long to wait for another process, in seconds.

        Raises:
            CaptureUnavailableError: Another process holds it for longer.
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
