"""A comparison as GitHub workflow commands: each cause of failures at the line that runs the new op.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_opprof.compare.common_cause import CommonCause, common_causes
from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.causes import RAISE_LIMIT, acceptance, accepting, cause_title, names_of
from pytest_opprof.report.overview import short_names
from pytest_opprof.report.summary import Judged, Summary, TestSummary
from pytest_opprof.report.text import cut_end, cut_middle, escaped

# GitHub shows this many of a kind for a step, and silently drops the rest.
_MOST_OF_A_KIND = 10
_MOST_NAMES = 3
_MOST_NAME = 120
_MOST_TEXT = 500
_MOST_COMMAND = 4_000
_MOST_PATH = 4_096  # Linux's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Annotation:
    """An annotation at one place, for tests that fail for one reason: `told`, line by line."""

    verdict: Verdict
    tests: Sequence[TestComparison | TestSummary]
    told: Sequence[str]
    file: str
    line: str = ""  # unknown

    @property
    def command(self) -> str:
        """The workflow command."""
        many = len(self.tests)
        name = cut_middle(escaped(self.tests[0].node_id), width=_MOST_NAME) if many == 1 else f"{many} tests"
        where = {
            "file": escaped(self.file) if len(self.file) <= _MOST_PATH else "",
            "line": self.line,
            "title": f"opprof: {self.verdict.label}: {name}",
        }
        return _command(_kind(self.verdict), where, "\n".join(self.told))


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """What the paths of a comparison are relative to, as seen from the repository's top; empty at the top."""

    start: str = ""  # where pytest was started: the paths of lines
    root: str = ""  # pytest's root folder: the paths in node ids


def github_annotations(comparison: Judged, *, folders: Folders | None = None) -> str:
    """A command for each cause of failures, at most ten of a kind; no line if no test fails.

    Tests without a numbered cause (INCONCLUSIVE or slower) share a command if they fail for one reason.
    """
    folders = folders or Folders()
    summary = Summary.of(comparison)
    causes = common_causes(summary.exact)
    names = short_names([test.node_id for test in summary.tests])
    found = [
        *(_of_cause(one, names, folders, accept=accepting(summary)) for one in causes),
        *_of_reasons(summary, causes, names, folders),
    ]
    lines: list[str] = []
    for kind in ("error", "warning"):
        all_of_kind = [one for one in found if _kind(one.verdict) == kind]
        shown = all_of_kind if len(all_of_kind) <= _MOST_OF_A_KIND else all_of_kind[: _MOST_OF_A_KIND - 1]
        lines += [one.command for one in shown]
        if len(shown) < len(all_of_kind):
            others = all_of_kind[len(shown) :]
            tests = sum(len(one.tests) for one in others)
            more = f"{len(others)} more causes ({tests} tests)"
            rest = "see the job's summary, or the comparison file"
            lines.append(_command(kind, {"title": "opprof"}, f"{more}: {rest}"))
    return "".join(f"{line}\n" for line in lines)


def _kind(verdict: Verdict) -> str:
    return "warning" if verdict is Verdict.INCONCLUSIVE else "error"


def _of_cause(cause: CommonCause, names: Mapping[str, str], folders: Folders, *, accept: str) -> _Annotation:
    """At the line that runs more ops; at the first test's file if it is unknown."""
    first = cause.tests[0]
    assert first.verdict is not None, "a test that has a cause has a verdict"
    told = list(map(_cut, (cause_title(cause), names_of(cause.tests, names, most=_MOST_NAMES))))
    steps = filter(None, (acceptance(cause, accept), RAISE_LIMIT if first.broken_limits else ""))
    told += [f"intended? {cut_end(escaped(step), width=_MOST_COMMAND)}" for step in steps]
    lines = filter(None, (one.change.line for one in cause.beginnings))
    place = next((line for line in lines if line.is_certain), None)
    file = _file(first, folders) if place is None else _below(folders.start, place.file)
    line = str(place.number or "") if place is not None else ""
    return _Annotation(verdict=first.verdict, tests=cause.tests, told=told, file=file, line=line)


def _of_reasons(
    summary: Summary, causes: Sequence[CommonCause], names: Mapping[str, str], folders: Folders
) -> Iterator[_Annotation]:
    """Failures without a numbered cause: a failed measurement, or a time of an A/B."""
    caused = {test.node_id for cause in causes for test in cause.tests}
    groups: dict[tuple[Verdict, str], list[TestSummary]] = {}
    for test in summary.tests:
        if test.is_failing and test.verdict is not None and test.node_id not in caused:
            groups.setdefault((test.verdict, test.reason), []).append(test)
    for (verdict, reason), tests in groups.items():
        slower = tests[0].times.cause if tests[0].times is not None else ""
        said = "; ".join(filter(None, (slower, reason)))
        told = list(map(_cut, (said, names_of(tests, names, most=_MOST_NAMES))))
        yield _Annotation(verdict=verdict, tests=tests, told=told, file=_file(tests[0], folders))


def _file(test: TestComparison | TestSummary, folders: Folders) -> str:
    return _below(folders.root, test.node_id.partition("::")[0])


def _below(folder: str, file: str) -> str:
    return f"{folder}/{file}" if folder and file and not file.startswith("/") else file


def _cut(text: str) -> str:
    return cut_end(escaped(text), width=_MOST_TEXT)


def _command(kind: str, where: dict[str, str], message: str) -> str:
    """``::error file=a.py,line=3,title=...::...``: separators inside its parts are encoded."""
    properties = (f"{name}={_data(value)}" for name, value in where.items() if value)
    encoded = ",".join(each.replace(":", "%3A").replace(",", "%2C") for each in properties)
    return f"::{kind} {encoded}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
