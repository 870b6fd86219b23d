"""``python -m benchmarks.adoption``, for `make adoption`: runs public suites and prints docs/adoption.md."""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.adoption.checkouts import UnavailableError, checkout, environment
from benchmarks.adoption.page import page
from benchmarks.adoption.projects import PROJECTS, SESSIONS, Project, Session
from benchmarks.adoption.results import REPOSITORY, Cell, Figures, commit, load, save, sources
from benchmarks.adoption.sessions import run

PAGE: Final = REPOSITORY / "docs" / "adoption.md"


def main(arguments: list[str] | None = None) -> int:
    """Run the sessions that have no results yet, then print the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adoption", description=__doc__)
    names = ", ".join(project.name for project in PROJECTS)
    parser.add_argument("--only", metavar="PATTERN", default="*", help=f"projects: {names}")
    parser.add_argument("--again", action="store_true", help="discard these projects' stored results")
    parser.add_argument("--write", action="store_true", help="write the page to docs/")
    folder = REPOSITORY / "build" / "adoption"
    parser.add_argument("--folder", type=Path, default=folder, help="for checkouts, environment and results")
    args = parser.parse_args(arguments)
    base = args.folder.resolve()
    base.mkdir(parents=True, exist_ok=True)
    # Keeps a project without a pytest config from using this repository's.
    (base / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for project in (project for project in PROJECTS if fnmatch.fnmatch(project.name, args.only)):
        now = Figures(commit=f"{commit()}, {datetime.now(UTC):%Y-%m-%d}", sources=sources())
        before = load(base / "results").get(project.name, now)
        figures = now if args.again or before.sources != now.sources else replace(before, unavailable="")
        try:
            measured(project, figures, base)
        except UnavailableError as error:
            figures = replace(figures, unavailable=str(error))
            print(f"{project.name}: {error}", file=sys.stderr, flush=True)
        save(base / "results", project.name, figures)
    text = page(PROJECTS, load(base / "results"))
    print(text)
    if args.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


def measured(project: Project, figures: Figures, base: Path) -> None:
    """Run the sessions of a project that have no figures yet, and store each session's when it ends.

    Raises:
        UnavailableError: The project or the environment cannot be installed.
    """
    missing = [session for session in SESSIONS if session.title not in figures.cells]
    if not missing:
        return
    python = environment(base)
    if missing[0] == SESSIONS[0]:
        shutil.rmtree(base / project.name / "store", ignore_errors=True)
    # Sessions that run several times alternate, because their difference is only a few percent.
    for session in [session for one in missing for session in turns(one, missing)]:
        tree = checkout(project, base, newer=session.newer)
        cell = run(project, session, python=python, checkout=tree, folder=base / project.name)
        figures.cells[session.title] = least(figures.cells.get(session.title), cell)
        save(base / "results", project.name, figures)
        said = f"{cell.tests} tests, {cell.failed} failed, {cell.tests_s:.1f} of {cell.whole_s:.1f} s"
        print(
            f"{project.name}: {session.title}: {said}, {cell.peak_mib:.0f} MiB {cell.verdicts} {cell.causes}",
            file=sys.stderr,
            flush=True,
        )


def turns(session: Session, missing: list[Session]) -> list[Session]:
    """A session that runs once; for the first one with several rounds, all those sessions in turn."""
    several = [one for one in missing if one.rounds > 1]
    if session.rounds == 1:
        return [session]
    return several * session.rounds if session == several[0] else []


def least(before: Cell | None, now: Cell) -> Cell:
    """The faster round."""
    return now if before is None or now.tests_s < before.tests_s else before


if __name__ == "__main__":
    sys.exit(main())
