"""One exception tree; each class has the exit code that the command line ends with.

::

    OpprofError                      3   anything of ours that went wrong
    ├── UsageError                   2   an option, a limit or a path that is invalid
    ├── CollectorError               3   the native collector failed
    │   ├── CaptureBusyError         3   another window is open in this process
    │   └── CaptureUnavailableError  3   this machine cannot capture what was asked for
    ├── DocumentError                4   a JSON file that is corrupt, foreign, invalid or newer
    ├── StoreError                   5   a store or file that cannot be written or read
    ├── MissingBaselineError         6   no baseline under the name or commit asked for
    ├── MeasurementError             7   a test that cannot be measured as planned
    ├── RecoveryError                8   a dead process's session file that cannot be read
    ├── ExperimentError              9   a side of an A/B or a bisection that cannot be built or measured
    └── ForgeError                  10   GitHub or GitLab does not answer, or not as expected
        └── ForgePermissionError    11   the token lacks a permission

Exit codes 0 and 1 belong to verdicts: a regression is a value, not an exception.
Every message says in one or two sentences what is wrong, where, and what to do.
"""

from __future__ import annotations

from typing import ClassVar


class OpprofError(Exception):
    """Any error of this package; its message says what to do."""

    exit_code: ClassVar[int] = 3


class UsageError(OpprofError):
    """An option, marker argument, limit, gate or path that is invalid."""

    exit_code: ClassVar[int] = 2


class CollectorError(OpprofError):
    """The native collector failed."""


class CaptureBusyError(CollectorError):
    """Another recording window is open in this process."""


class CaptureUnavailableError(CollectorError):
    """This machine, interpreter or torch cannot capture what was asked for."""


class DocumentError(OpprofError):
    """A JSON file that is corrupt, foreign, invalid, or newer than this release.

    The message names the file and, if one value is wrong, its JSON path.
    """

    exit_code: ClassVar[int] = 4


class StoreError(OpprofError):
    """A store or file that cannot be written or read; existing files are unchanged."""

    exit_code: ClassVar[int] = 5


class MissingBaselineError(OpprofError):
    """No baseline exists under the name or commit that was asked for."""

    exit_code: ClassVar[int] = 6


class MeasurementError(OpprofError):
    """A test that cannot be measured as planned, such as one that cannot be repeated."""

    exit_code: ClassVar[int] = 7


class RecoveryError(OpprofError):
    """The session file of a process that died cannot be read."""

    exit_code: ClassVar[int] = 8


class ExperimentError(OpprofError):
    """A side of an A/B or a bisection that cannot be checked out, built, collected or measured."""

    exit_code: ClassVar[int] = 9


class ForgeError(OpprofError):
    """GitHub or GitLab does not answer, or not as expected; existing comments are unchanged."""

    exit_code: ClassVar[int] = 10


class ForgePermissionError(ForgeError):
    """The token lacks a permission, which the message names."""

    exit_code: ClassVar[int] = 11
