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
# The options that a request may leave open, and what they are then in a new experiment.
_OPEN: Final = {"setup": "", "python": "", "processes": 12, "steps": 15, "max_time": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The user's options; None means the default, or the value of the resumed experiment.

    The other attributes are those of `Plan`.
    """

    base: str  # a branch, tag or commit
    arguments: tuple[str, ...] = ()
    processes: int | None = None
    steps: int | None = None
    max_time: float | None = None
    seed: int | None = None
    setup: str | None = None
    python: str | None = None
    timeout: float | None = None  # how long a process may take, seconds
    resume: str = ""  # "" to start anew; "newest", or an experiment's name
    settings: TimeSettings = field(default_factory=TimeSettings)


def kept_for(request: Request, *, root: Path, base: str, head: Head, prefix: str) -> Kept:
    """The experiment to resume, or a new one; raises `UsageError` if there is none with these options.

    `base` is the base's commit, `prefix` the folder below the top that pytest starts in.
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
    chosen: dict[str, Any] = {"arguments": (), **_OPEN, "seed": secrets.randbelow(2**32)}
    if like is not None:
        chosen = {name: getattr(like, name) for name in chosen}
    given = {name: getattr(request, name) for name in chosen if getattr(request, name) not in {None, ()}}
    return Plan(
        base=base,
        head=head.key,
        prefix=prefix,
        opprof_version=version(),
        interpreter=sys.executable,
        **chosen | given,
    )
