"""Prepare both sides of an A/B: build them, and give the base the head's tests."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_opprof.baselines.accepted import read_accepted
from pytest_opprof.baselines.folder import FOLDER
from pytest_opprof.baselines.git import without_git
from pytest_opprof.compare.gates import parse_gate_options
from pytest_opprof.compare.sessions import Policy
from pytest_opprof.errors import ExperimentError
from pytest_opprof.experiment.experiment_store import Plan
from pytest_opprof.experiment.interleave import Side
from pytest_opprof.experiment.session import (
    WITHOUT_ADDED,
    ListedTest,
    Listing,
    ProcessDiedError,
    Spot,
    list_tests,
    measure,
    measure_and_list,
    run,
)
from pytest_opprof.experiment.worktree import CONFTEST, put
from pytest_opprof.release import DISTRIBUTION, version
from pytest_opprof.results.run import Run

_VERSION: Final = f"import importlib.metadata as m; print(m.version({DISTRIBUTION!r}))"
# Variables of an outer pytest, its plugins or a coverage tool that would disturb the processes.
_NOT_INHERITED: Final = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_", "PYTEST_VERSION", "COV_CORE_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A prepared side."""

    side: Side
    spot: Spot  # where its processes run, with all variables but PYTHONHASHSEED
    options: tuple[str, ...]  # Pytest's arguments besides the tests
    tests: tuple[str, ...]  # the node ids of the tests that it has

    @property
    def traces(self) -> Path:
        """The folder of the traces that `tried` writes."""
        return self.spot.place / "traces"

    def measured(self, node_ids: Iterable[str], *, hash_seed: int, timeout: float) -> Run:
        """Measure some of `tests` in a fresh process; raises `ProcessDiedError` if it leaves no run."""
        run, _ = measure(self._arguments(node_ids), self._seeded(hash_seed), timeout=timeout)
        return run

    def tried(self, *, timeout: float | None) -> tuple[Run, Listing]:
        """Measure and list all tests in a first process, which also fills all caches.

        It writes the tests' traces too, because that would disturb a judged process.
        """
        try:
            run, listing, _ = measure_and_list(
                [*self._arguments(self.tests), f"--opprof-traces={self.traces}"],
                self._seeded(1),
                timeout=timeout,
            )
        except ProcessDiedError as error:
            raise ExperimentError(f"the tests cannot be run on the {self.side}: {error}") from error
        return run, listing

    def _arguments(self, node_ids: Iterable[str]) -> list[str]:
        path = self.spot.place / "tests.json"
        path.write_text(json.dumps([*node_ids]), encoding="ascii")
        return [*self.options, f"--opprof-tests={path}"]

    def _seeded(self, hash_seed: int) -> Spot:
        return self.spot.told({"PYTHONHASHSEED": str(hash_seed), **WITHOUT_ADDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Base and head, with the tests that both have."""

    base: Bench
    head: Bench
    only_head: tuple[str, ...]  # the node ids of the tests that the base does not have
    only_base: tuple[str, ...]  # those that the head lacks or does not mark, in the same files
    policy: Policy  # the head's gates and accepted values

    def told(self, variables: Mapping[str, str]) -> Sides:
        """A copy with these variables added."""
        base, head = (replace(one, spot=one.spot.told(variables)) for one in (self.base, self.head))
        return replace(self, base=base, head=head)


def build(plan: Plan, *, base: Path, head: Path, place: Path, locks: tuple[int, ...]) -> Mapping[Side, Spot]:
    """Build both sides, from the tops of their work trees; the processes' files go into the empty `place`."""
    environment = inherited(has_its_own=bool(plan.python))
    spots = {}
    for side, top in ((Side.BASE, base), (Side.HEAD, head)):
        folder = top.resolve() / plan.prefix
        if not folder.is_dir():
            raise ExperimentError(f"the {side} has no folder {folder}: start in a folder of both sides")
        (place / side).mkdir()
        spot = Spot(
            python=plan.python, folder=folder, environment=environment, place=place / side, locks=locks
        )
        spots[side] = made_ready(spot, setup=plan.setup, side=side, whose=f"the {side}")
    return spots


def prepare(plan: Plan, spots: Mapping[Side, Spot], *, base: Path, head: Path) -> Sides:
    """List both sides' tests, and replace those in the base's work tree with the head's.

    Raises `ExperimentError` if a side cannot be collected, or the sides have no test in common.
    """
    base, head = base.resolve(), head.resolve()
    head_list = list_tests(plan.arguments, spots[Side.HEAD])
    wanted = _wanted(head_list)
    spots = _led_apart(spots, head_list, base=base, head=head, has_its_own=bool(plan.python))
    base_list = _list_base(
        wanted, head_list, root=_counterpart(head_list.root, head=head, base=base), spot=spots[Side.BASE]
    )
    known = {test.node_id for test in base_list.tests}
    common = [test for test in wanted if test.node_id in known]
    if not common:
        many = len(wanted)
        tests = f"none of {many} tests is" if many > 1 else f"the test {wanted[0].node_id} is not"
        raise ExperimentError(f"there is nothing to compare: {tests} in the base")
    copy_tests((test.path for test in common), source=head_list.root, to=base_list.root, top=base)
    return Sides(
        base=_bench(Side.BASE, spots[Side.BASE], base_list, common, plan=plan),
        head=_bench(Side.HEAD, spots[Side.HEAD], head_list, common, plan=plan),
        only_head=tuple(test.node_id for test in wanted if test.node_id not in known),
        only_base=_only_base(base_list, head_list, plan=plan),
        policy=Policy(
            ini=parse_gate_options(head_list.ini_gates, where="opprof_gate"),
            command_line=parse_gate_options(head_list.gates),
            accepted=read_accepted(head_list.root / FOLDER),
        ),
    )


def _bench(side: Side, spot: Spot, listing: Listing, common: Iterable[ListedTest], *, plan: Plan) -> Bench:
    tests = tuple(test.node_id for test in common)
    timing = (f"--opprof-timed-steps={plan.steps}", f"--opprof-timed-max-time={plan.max_time:g}")
    options = (*listing.arguments, *timing, "--opprof-fail-on=none")
    return Bench(side=side, spot=spot, options=options, tests=tests)


def made_ready(spot: Spot, *, setup: str, side: str, whose: str) -> Spot:
    """Build a spot with the user's command `setup`, if any, and return it with its interpreter found.

    The interpreter is a path relative to the spot's folder, a program's name, or "" for this one. `side` is
    the command's `OPPROF_SIDE`, and errors call the spot `whose`. Raises `ExperimentError` if the build
    fails, with its last lines, and all of them in a note; or if no such interpreter has this release.
    """
    if setup:
        environment = {**spot.environment, "OPPROF_SIDE": side}
        done = run(["/bin/sh", "-c", setup], folder=spot.folder, environment=environment, locks=spot.locks)
        if done.code:
            error = ExperimentError(
                f"the {side} does not build: `{setup}` in {spot.folder}: {done.ending}:\n{done.tail}"
            )
            error.add_note(done.output)
            raise error
    return replace(spot, python=_interpreter(spot, whose=whose))


def _interpreter(spot: Spot, *, whose: str) -> str:
    python, folder, environment = spot.python, spot.folder, spot.environment
    if not python:
        return sys.executable
    found = str(folder / python) if os.sep in python else shutil.which(python, path=environment.get("PATH"))
    if found is None or not os.access(found, os.X_OK):
        raise ExperimentError(f"{whose} has no interpreter {found or python}: let --setup make it")
    try:
        done = run([found, "-c", _VERSION], folder=folder, environment=environment)
    except OSError as error:
        raise ExperimentError(f"{whose}'s interpreter {found} cannot be run: {error.strerror}") from error
    its, ours = done.tail.splitlines()[-1], version()
    if done.code or its != ours:
        theirs = f"has no {DISTRIBUTION}" if done.code else f"has {DISTRIBUTION} {its}"
        raise ExperimentError(
            f"{whose}'s interpreter {found} {theirs}: let --setup install {DISTRIBUTION}=={ours} for it"
        )
    return found


def refuse_strangers(listing: Listing, *, whose: str, base: Path, head: Path) -> None:
    """Check by the listing of a process that ran the base's tests that they ran the code of its work tree.

    Raises `ExperimentError` if they imported a module from the head, for example by an editable install, or
    from a copy of the project that is installed for both. Errors call the base `whose`.
    """
    base, head = base.resolve(), head.resolve()

    def is_of_head(path: Path) -> bool:
        return path.is_relative_to(head) and not path.is_relative_to(base)

    for name, file in sorted(listing.modules.items()):
        path = Path(file).resolve()
        if is_of_head(path) and not listing.is_installed(path):
            raise ExperimentError(
                f"{whose}'s tests import {name} from the head: {path}. It is installed in editable mode: "
                'name its folder to pytest, as `pythonpath = ["src"]` does in the ini file of both sides'
            )
    for name, source in sorted(listing.copies.items()):
        path = Path(listing.modules[name])
        if is_of_head(Path(source).resolve()) if source else not path.resolve().is_relative_to(base):
            raise ExperimentError(
                f"{whose}'s tests import {name} from a copy of the project that is installed for all "
                f"commits: {path}. Install it in editable mode, or give each its own environment by --setup "
                "and --python"
            )


def copy_tests(paths: Iterable[str], *, source: Path, to: Path, top: Path) -> None:
    """Copy test files and each ``conftest.py`` above them; remove those that the source does not have.

    `source` and `to` are pytest's root folders, and `paths` are relative to these. A file outside of the work
    tree with this `top` raises `ExperimentError`.
    """
    files = {PurePosixPath(path) for path in paths}
    wanted = files | {folder / CONFTEST for path in files for folder in path.parents}
    there = {path: (source / path).read_bytes() for path in wanted if (source / path).exists()}
    put({to / path: there.get(path) for path in sorted(wanted)}, top=top)


def inherited(*, has_its_own: bool) -> dict[str, str]:
    """The variables that a fresh process inherits.

    If it has its own virtual environment, these are without VIRTUAL_ENV, which installers use.
    """
    kept = {name: value for name, value in without_git().items() if not name.startswith(_NOT_INHERITED)}
    if has_its_own:
        kept.pop("VIRTUAL_ENV", None)
    return kept


def _wanted(listing: Listing) -> list[ListedTest]:
    wanted = [test for test in listing.tests if test.is_marked and test.is_chosen]
    if not wanted:
        raise ExperimentError(
            "none of the selected tests has @pytest.mark.profile: mark one, or select others"
        )
    return wanted


def _only_base(base: Listing, head: Listing, *, plan: Plan) -> tuple[str, ...]:
    """The marked tests that the head no longer has; none if the user selects single tests of a file."""
    if any("::" in argument for argument in plan.arguments):
        return ()
    marked = {test.node_id for test in head.tests if test.is_marked}
    return tuple(
        test.node_id
        for test in base.tests
        if test.is_marked and test.is_chosen and test.node_id not in marked
    )


def _list_base(wanted: Sequence[ListedTest], head: Listing, *, root: Path, spot: Spot) -> Listing:
    """List the base's own tests in the files of the wanted tests: those that it lacks have no times there."""
    files = {test.argument: root / test.path for test in wanted}
    there = [argument for argument, path in files.items() if path.exists()]
    if not there:
        return replace(head, root=root, arguments=(), options=(), tests=())
    # The head's files replace them within a second: their bytecode would pass for that of the new files.
    unwritten = spot.told({"PYTHONDONTWRITEBYTECODE": "1"})
    return list_tests([*head.options, f"--rootdir={root}", *there], unwritten)


def _led_apart(
    spots: Mapping[Side, Spot], listing: Listing, *, base: Path, head: Path, has_its_own: bool
) -> Mapping[Side, Spot]:
    """The sides, each with a PYTHONPATH to its own code.

    If PYTHONPATH or an editable install names a folder of the head, the base gets its counterpart. Editable
    installs do not matter if each side has its own environment.
    """
    variables = spots[Side.HEAD].environment
    given = [entry for entry in variables.get("PYTHONPATH", "").split(os.pathsep) if entry]
    of_head = [*given, *([] if has_its_own else _editable(listing, head=head))]
    if not of_head:
        return spots
    of_side = {
        Side.BASE: [str(_counterpart(Path(entry), head=head, base=base)) for entry in of_head],
        Side.HEAD: of_head,
    }
    return {side: spot.told({"PYTHONPATH": os.pathsep.join(of_side[side])}) for side, spot in spots.items()}


def _editable(listing: Listing, *, head: Path) -> list[str]:
    """The head's folders that editable installs import from."""
    entries = list(listing.sys_path)
    # Entries after the standard library come from site-packages and its .pth files.
    behind = entries[entries.index(listing.stdlib) :] if listing.stdlib in entries else []
    return [
        entry
        for entry in behind
        if Path(entry).resolve().is_relative_to(head) and not listing.is_installed(Path(entry))
    ]


def _counterpart(path: Path, *, head: Path, base: Path) -> Path:
    """The base's counterpart of a path in the head; any other path unchanged."""
    resolved = path.resolve()
    return base / resolved.relative_to(head) if resolved.is_relative_to(head) else path
