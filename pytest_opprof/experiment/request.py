"""A request to ``opprof ab``, and its experiment: a new one, or one to resume."""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pytest_opprof.compare.timing.comparison import TimeSettings
from pytest_opprof.errors import UsageError
from pytest_opprof.experiment.commits import Head
from pytest_opprof.experiment.experiment_store import Kept, Plan, begin, named, resumable, unfinished
from pytest_opprof.release import version

NEWEST: Final = "newest"
DEFAULT_PROCESSES: Final = 12
DEFAULT_STEPS: Final = 15
DEFAULT_MAX_TIME: Final = 1.0
_OPEN: Final = ("setup", "python", "processes", "steps", "max_time", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The user's options; None means the default, or the value of the resumed experiment.

    The other attributes are those of `Plan`.

    Attributes:
        base: A branch, tag or commit.
        timeout: How long a process may take, seconds.
        resume: "" to start anew; "newest", or an experiment's name.
    """

    base: str
    arguments: tuple[str, ...] = ()
    processes: int | None = None
    steps: int | None = None
    max_time: float | None = None
    seed: int | None = None
    setup: str | None = None
    python: str | None = None
    timeout: float | None = None
    resume: str = ""
    settings: TimeSettings = field(default_factory=TimeSettings)


def kept_for(request: Request, *, root: Path, base: str, head: Head, prefix: str) -> Kept:
    """The experiment to resume, or a new one.

    Args:
        base: The base's commit.
        prefix: The folder below the top that pytest starts in.

    Raises:
        UsageError: There is nothing to resume, or it has other options.
        OpprofError: An experiment cannot be read or written.
    """
    if request.resume and request.resume != NEWEST:
        kept = named(root, request.resume)
        wanted = _plan(request, base=base, head=head, prefix=prefix, like=kept.plan)
        if different := kept.plan.differences(wanted):
            raise UsageError(
                f"--resume={request.resume}: that experiment has another {' and another '.join(different)}: "
                "leave out --resume to measure again"
            )
        return kept
    if request.resume:
        for kept in unfinished(root):
            like = replace(kept.plan, arguments=request.arguments)
            if kept.plan == _plan(request, base=base, head=head, prefix=prefix, like=like):
                return kept
        raise UsageError(
            "--resume: no unfinished experiment has these options; leave out --resume to start one. "
            f"Unfinished: {resumable(root)}"
        )
    plan = _plan(request, base=base, head=head, prefix=prefix)
    return begin(root, plan, now=datetime.now(UTC))


def _plan(request: Request, *, base: str, head: Head, prefix: str, like: Plan | None = None) -> Plan:
    """The plan of a request, with open options taken from the plan to resume."""
    default = like or Plan(
        base=base,
        head=head.key,
        prefix=prefix,
        arguments=(),
        setup="",
        python="",
        processes=DEFAULT_PROCESSES,
        steps=DEFAULT_STEPS,
        max_time=DEFAULT_MAX_TIME,
        seed=secrets.randbelow(2**32),
        opprof_version=version(),
    )
    given: dict[str, Any] = {name: getattr(request, name) for name in _OPEN}
    return replace(
        default,
        base=base,
        head=head.key,
        prefix=prefix,
        arguments=request.arguments or default.arguments,
        opprof_version=version(),
        interpreter=sys.executable,
        **{name: value for name, value in given.items() if value is not None},
    )
