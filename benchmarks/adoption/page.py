"""The text of docs/adoption.md: the table of costs and verdicts, and the findings behind them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.adoption.projects import SESSIONS, Project
from benchmarks.adoption.results import Cell, Figures

# What a person found to be behind failures.
_FINDINGS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("findings.toml").read_text(encoding="utf-8")
)
_HEAD: Final = """\
# Adoption

`make adoption` takes two releases of each of six public projects, runs the project's own tests through
pytest-opprof, and prints this page. `--opprof-mark=.` marks every test. The releases are two commits of one
repository, and both use the same torch, numpy and Python.
"""
_NOTES: Final = """
- *plain CPU*: user and system time of the session and its child processes, without the plugin, on one torch
  thread. The first figure starts at the end of the collection; the one in brackets is that of the whole
  session, with its imports. Plain and unmarked sessions run twice, alternately; the faster one counts.
- *comparing ÷ plain*: with a baseline of the same code, the faster of two sessions; one more call of each
  test counts Python instructions. Bound for the whole session: 3.5, and 9 without torch.
- *save ÷ plain*: a first save, with the fresh process that certifies the counts. It was at most 6 before
  Python instructions were counted.
- *memory*: extra resident memory of the largest process while it compares. Aim: 15 % or 128 MiB.
- *unmarked*: extra CPU time of the whole session with the plugin loaded and no test marked. Bound: 2 % or
  5 ms. Two plain sessions of a suite may differ by more; `make bench` has a suite made for this.
- *false alarms*: tests that fail against a baseline of the same code, by session. Bound: 0.
- *findings*: tests that fail on the newer release against a baseline of the older one.

Before the work on costs and causes, kornia's 77 tests of colour conversions took 0.86 s plain and 28 s
marked, and suites took 5 to 33 times a plain session. Between the releases 27 tests of kornia failed, and
26 of captum.
"""
_TITLES: Final = (
    "project",
    "releases",
    "tests",
    "plain CPU",
    "comparing ÷ plain",
    "save ÷ plain",
    "memory",
    "unmarked",
    "false alarms",
    "findings",
    "commit",
)
_ALARMS: Final = ("tests", "the first", "sessions", "what is said", "behind it")
_FAILING: Final = ("regressed", "missing", "inconclusive", "error")


def page(projects: Sequence[Project], found: Mapping[str, Figures]) -> str:
    """The page, given the figures by project name."""
    lines = [_line(_TITLES), _line(["---"] * len(_TITLES))]
    lines += [_line(_cells(project, found.get(project.name))) for project in projects]
    alarms = [line for project in projects for line in _alarms(project, found.get(project.name))]
    if alarms:
        alarms = ["## False alarms", "", _line(_ALARMS), _line(["---"] * len(_ALARMS)), *alarms, ""]
    causes = [line for project in projects for line in _causes(project, found.get(project.name))]
    return "\n".join([_HEAD, *lines, _NOTES, *alarms, *causes]).rstrip() + "\n"


def _cells(project: Project, figures: Figures | None) -> list[str]:
    head = [project.name, f"{project.older} → {project.newer}"]
    if figures is None or figures.unavailable:
        return [*head, figures.unavailable if figures else "not run", *[""] * (len(_TITLES) - 3)]
    cells = figures.cells
    plain, same = cells.get("plain"), _faster(cells, "same code", "same code again")
    if plain is None:
        return [*head, "not run", *[""] * (len(_TITLES) - 3)]
    failed = f", {plain.failed} fail" if plain.failed else ""
    return [
        *head,
        f"{plain.tests}{failed}",
        f"{plain.tests_s:.1f} s ({plain.whole_s:.1f} s)",
        _ratio(same, plain),
        _ratio(cells.get("save"), plain),
        _memory(same, plain),
        _unmarked(cells.get("unmarked"), plain),
        _false_alarms(cells),
        _verdicts(cells.get("newer")),
        figures.commit,
    ]


def _faster(cells: Mapping[str, Cell], *titles: str) -> Cell | None:
    return min(
        (cells[title] for title in titles if title in cells), key=lambda cell: cell.tests_s, default=None
    )


def _ratio(cell: Cell | None, plain: Cell) -> str:
    if cell is None:
        return "not run"
    return f"{cell.tests_s / plain.tests_s:.1f} ({cell.whole_s / plain.whole_s:.1f})"


def _memory(cell: Cell | None, plain: Cell) -> str:
    if cell is None:
        return "not run"
    more = cell.peak_mib - plain.peak_mib
    return f"{more:+.0f} MiB ({100 * more / plain.peak_mib:+.0f} %)"


def _unmarked(cell: Cell | None, plain: Cell) -> str:
    if cell is None:
        return "not run"
    more = cell.whole_s - plain.whole_s
    return f"{1000 * more:+.0f} ms ({100 * more / plain.whole_s:+.1f} %)"


def _false_alarms(cells: Mapping[str, Cell]) -> str:
    parts = []
    for session in (session for session in SESSIONS if session.certain):
        cell = cells.get(session.title)
        parts.append(f"{session.title}: {_verdicts(cell)}")
    return "; ".join(parts) if any(not part.endswith(": 0") for part in parts) else "0"


def _verdicts(cell: Cell | None) -> str:
    """The number of failing tests for each verdict."""
    if cell is None:
        return "not run"
    if "no comparison" in cell.verdicts:
        return "nothing was compared"
    failing = [f"{cell.verdicts[name]} {name}" for name in _FAILING if cell.verdicts.get(name)]
    return ", ".join(failing) or "0"


def _alarms(project: Project, figures: Figures | None) -> list[str]:
    """Rows of tests that fail on the baseline's own code, grouped by cause and failing sessions."""
    cells = figures.cells if figures else {}
    sessions: dict[str, list[str]] = {}
    causes: dict[str, str] = {}
    for title in (session.title for session in SESSIONS if session.certain and session.title in cells):
        for test, cause in cells[title].failures.items():
            sessions.setdefault(test, []).append(title)
            causes.setdefault(test, cause)
    alike: dict[tuple[str, str], list[str]] = {}
    for test, titles in sessions.items():
        alike.setdefault((causes[test], ", ".join(titles)), []).append(test)
    return [
        _line([str(len(tests)), f"`{tests[0]}`", titles, f"`{cause}`", _found(project.name, tests[0], cause)])
        for (cause, titles), tests in alike.items()
    ]


def _causes(project: Project, figures: Figures | None) -> list[str]:
    """A section with the newer release's failures by cause, and what a person found behind each."""
    newer = figures.cells.get("newer") if figures else None
    if newer is None or not newer.causes:
        return []
    lines = [f"## {project.name} {project.older} → {project.newer}", ""]
    lines += [_line(["tests", "cause", "behind it"]), _line(["---"] * 3)]
    for cause, count in newer.causes.items():
        lines.append(_line([str(count), f"`{cause}`", _found(project.name, cause)]))
    return [*lines, ""]


def _found(project: str, *said: str) -> str:
    """The finding for a cause or a test: the one with the longest matching prefix."""
    known = _FINDINGS.get(project, {}).items()
    fitting = {start: text for start, text in known if any(one.startswith(start) for one in said)}
    return fitting[max(fitting, key=len)] if fitting else "not looked at"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
