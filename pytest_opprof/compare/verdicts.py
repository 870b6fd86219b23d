"""The answers a gate can give, and which of them fail a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pytest_opprof.errors import UsageError
from pytest_opprof.wording import did_you_mean

DEFAULT_FAIL_ON = "regressed,missing,inconclusive,error,no-baseline"
_NO_BASELINE = "no-baseline"
_UNMEASURED = "unmeasured"
_NOTHING = "none"


class Verdict(StrEnum):
    """A gate's answer on a test or a change; the worst comes first."""

    ERROR = "error"
    REGRESSED = "regressed"
    MISSING = "missing"
    INCONCLUSIVE = "inconclusive"
    ACCEPTED = "accepted"  # it rose, and `opprof accept` has a reason
    CHANGED = "changed"
    IMPROVED = "improved"
    NEW = "new"
    PASS = "pass"  # noqa: S105 - a verdict, not a password

    @property
    def severity(self) -> int:
        """0 for the worst; verdicts sort by it."""
        return _SEVERITY[self]

    @property
    def label(self) -> str:
        """As reports print it: ``REGRESSED``."""
        return self.value.upper()


_SEVERITY = {verdict: at for at, verdict in enumerate(Verdict)}


def severity_of(verdict: Verdict | None) -> int:
    """The severity of a verdict; None, advisory, is the least."""
    return len(_SEVERITY) if verdict is None else verdict.severity


def worst(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The worst of some verdicts; None without one (all advisory)."""
    return min((verdict for verdict in verdicts if verdict), key=lambda one: one.severity, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailOn:
    """The verdicts and other reasons that fail a session."""

    verdicts: frozenset[Verdict]  # of tests
    no_baseline: bool  # the requested baseline does not exist
    unmeasured: bool  # nothing can be measured on this platform, or by this installation

    def fails(self, verdict: Verdict | None) -> bool:
        """Whether a test with this verdict fails; advisory is None and never does."""
        return verdict in self.verdicts


def parse_fail_on(text: str, *, where: str = "--opprof-fail-on") -> FailOn:
    """Read ``regressed,missing``; ``none`` lets everything pass. Some verdicts, such as PASS, cannot fail."""
    harmless = {Verdict.PASS, Verdict.IMPROVED, Verdict.ACCEPTED}
    known = {verdict.value: verdict for verdict in Verdict if verdict not in harmless}
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    choices = [*known, _NO_BASELINE, _UNMEASURED, _NOTHING]
    for name in names:
        if name in harmless:
            raise UsageError(f"{where}: {name!r} is never a failure (choose from: {', '.join(choices)})")
        if name not in choices:
            raise UsageError(f"{where}: unknown verdict {name!r} ({did_you_mean(name, choices)})")
    if not names or (_NOTHING in names and len(names) > 1):
        raise UsageError(f"{where}: name the verdicts that fail, or {_NOTHING!r} alone")
    verdicts = frozenset(known[name] for name in names if name in known)
    return FailOn(verdicts=verdicts, no_baseline=_NO_BASELINE in names, unmeasured=_UNMEASURED in names)
