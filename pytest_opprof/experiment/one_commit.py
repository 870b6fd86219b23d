"""Measure one metric of one test at one commit, in its own work tree and pytest process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_opprof.baselines.ancestry import SHORT
from pytest_opprof.errors import ExperimentError, OpprofError, UsageError
from pytest_opprof.experiment.place import Place
from pytest_opprof.experiment.session import ProcessDiedError, Spot, measure_and_list
from pytest_opprof.experiment.sides import inherited, made_ready, refuse_strangers
from pytest_opprof.experiment.worktree import CONFTEST, checked_out, git, put, top_folder
from pytest_opprof.metrics import MetricPath
from pytest_opprof.results.run import Run, TestResult, value_in

_LINK: Final = "120000 "  # the mode of a symbolic link
# Overrides whatever an ini file compares, keeps or writes: only the run is wanted.
QUIET: Final = (
    *("--opprof=on", "--opprof-save=", "--opprof-baseline=", "--opprof-traces=", "--opprof-history=off"),
    *("--opprof-report=", "-q"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric at a commit."""

    value: int | None  # in each step; None if it could not be measured
    reason: str = ""  # why not, in a line; empty if it was
    error: str = ""  # the whole output of the process that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is measured at each commit."""

    repository: Path  # the folder where the command was started, in a work tree
    test: str  # the test's id as pytest takes it there
    path: MetricPath  # an exact metric
    setup: str = ""  # a shell command that prepares a work tree, such as a build; empty for none
    python: str = ""  # the interpreter of each work tree, see `sides.made_ready`
    # The newest commit's `test_files`. They replace each commit's own, so that all commits run the same test.
    files: Mapping[PurePosixPath, bytes | None] = field(default_factory=dict)
    # Seconds after which a commit's process is stopped and the commit skipped; None for no limit.
    timeout: float | None = None


def test_files(repository: Path, test: str, *, commit: str) -> dict[PurePosixPath, bytes | None]:
    """The files of a test at a commit: its own and each conftest.py in a folder above, up to the top.

    By path from the top, their content; None for a conftest.py that does not exist. Raises `UsageError` if
    the commit has no such file.
    """
    top, given = top_folder(repository), test.partition("::")[0]
    path = PurePosixPath(os.path.relpath(repository / given, top))
    wanted = [path, *(parent / CONFTEST for parent in path.parents)]
    listed = git(top, "ls-tree", "-z", "--name-only", commit, "--", *map(str, wanted)).split("\0")
    if str(path) not in listed:
        raise UsageError(
            f"{commit[:SHORT]} has no file {given}: give TEST from here, such as tests/test_a.py::test_x"
        )
    texts = {name: _text(name, top=top, commit=commit) for name in wanted if str(name) in listed}
    content = {name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()}
    return dict.fromkeys(wanted) | content


def _text(name: PurePosixPath, *, top: Path, commit: str) -> str:
    """A file's content at a commit; of a symbolic link, that of the file that it leads to."""
    seen = set[PurePosixPath]()
    while name not in seen:
        seen.add(name)
        text = git(top, "show", f"{commit}:{name}")
        if not git(top, "ls-tree", commit, "--", str(name)).startswith(_LINK):
            return text
        name = PurePosixPath(os.path.normpath(name.parent / text))
    raise ExperimentError(f"{commit[:SHORT]}: {name} is a symbolic link to itself")


def measure_commit(target: Target, commit: str) -> Measured:
    """Measure a commit; one that cannot be built or run has a reason instead of a value."""
    top = top_folder(target.repository)
    try:
        with checked_out(target.repository, commit) as tree, Place("bisect") as place:
            here = tree.folder / target.repository.relative_to(top)
            put({tree.folder / name: data for name, data in target.files.items()}, top=tree.folder)
            name = commit[:SHORT]
            spot = Spot(
                python=target.python,
                folder=here,
                environment=_environment(here, has_its_own=bool(target.python)),
                place=place.folder,
                locks=(tree.lock, place.lock),
            )
            spot = made_ready(spot, setup=target.setup, side=name, whose=name)
            run, listing, done = measure_and_list([*QUIET, target.test], spot, timeout=target.timeout)
            refuse_strangers(listing, whose=name, base=tree.folder, head=top)
            found = _value(run, target)
            return replace(found, error=done.output) if done.code and found.value is None else found
    except (OpprofError, ProcessDiedError, OSError) as error:
        whole = "\n".join(getattr(error, "__notes__", ()))
        return Measured(value=None, reason=_in_a_line(str(error)), error=whole or str(error))


def _in_a_line(text: str) -> str:
    """An error's first line, and the last line that the process printed."""
    first, *others = [line for line in text.splitlines() if line.strip()] or ["it printed nothing"]
    return f"{first} {others[-1].strip()}" if others else first


def _environment(folder: Path, *, has_its_own: bool) -> dict[str, str]:
    """Put this commit's packages before the installed ones, also in the layout with ``src``.

    In an environment of its own they are installed, and the work tree may lack their compiled files.
    """
    # Work trees are made within a second of each other: one's bytecode would pass for the other's.
    kept = inherited(has_its_own=has_its_own) | {"PYTHONDONTWRITEBYTECODE": "1"}
    if has_its_own:
        return kept
    before = [str(place) for place in (folder / "src", folder) if place.is_dir()]
    return kept | {"PYTHONPATH": os.pathsep.join([*before, *filter(None, [kept.get("PYTHONPATH")])])}


def _value(run: Run, target: Target) -> Measured:
    if len(run.tests) != 1:
        what = ", ".join(test.node_id for test in run.tests[:3]) or "none with the profile marker"
        return Measured(value=None, reason=f"{target.test} selects {len(run.tests)} tests ({what}), not one")
    (test,) = run.tests
    problem = _problem(test)
    if problem:
        return Measured(value=None, reason=problem)
    samples = value_in(test, target.path)
    if samples is None:
        return Measured(value=None, reason=f"{target.path} was not recorded ({', '.join(test.sources)} were)")
    if not samples.is_constant:
        reason = f"{target.path} is not the same in each step: {samples.low} to {samples.high}"
        return Measured(value=None, reason=reason)
    return Measured(value=samples.low)


def _problem(test: TestResult) -> str:
    """Why a result is unreliable; empty if it is not."""
    if not test.is_usable:
        return test.measurement.reason or f"the test {test.outcome}"
    if not test.steps:
        return "no step was measured"
    if not test.capture.is_complete or test.capture.is_sampled:
        return "not every op was recorded"
    return ""
