"""Both sides of an A/B made ready: the base's code under the head's tests, built, and seen to run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_opprof.baselines.accepted import read_accepted
from pytest_opprof.baselines.folder import project_folder
from pytest_opprof.compare.gates import parse_gate_options
from pytest_opprof.compare.sessions import Policy
from pytest_opprof.errors import ExperimentError
from pytest_opprof.experiment.experiment_store import Plan
from pytest_opprof.experiment.interleave import Side
from pytest_opprof.experiment.own_code import counterpart, led_apart
from pytest_opprof.experiment.session import (
    ListedTest,
    Listing,
    ProcessDiedError,
    Spot,
    list_tests,
    measure,
    measure_and_list,
    run,
)
from pytest_opprof.experiment.worktree import without_git
from pytest_opprof.release import DISTRIBUTION, version
from pytest_opprof.results.run import Run

_CONFTEST: Final = "conftest.py"
_VERSION: Final = f"import importlib.metadata as m; print(m.version({DISTRIBUTION!r}))"
# What an outer pytest, its plugins or a coverage tool would leave for the processes to stumble over.
_NOT_INHERITED: Final = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_", "PYTEST_VERSION", "COV_CORE_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A side that can be measured.

    Attributes:
        spot: Where its processes run, with all variables but PYTHONHASHSEED.
        options: What pytest is given beside the tests.
        tests: From a test's node id to pytest's argument for it.
    """

    side: Side
    spot: Spot
    options: tuple[str, ...]
    tests: Mapping[str, str]

    @property
    def traces(self) -> Path:
        """The folder of the traces of the process that it was tried with."""
        return self.spot.place / "traces"

    def measured(self, node_ids: Iterable[str], *, hash_seed: int, timeout: float) -> Run:
        """What one fresh process measures of these tests.

        Args:
            node_ids: Of `tests`.
            timeout: Seconds after which it is ended.

        Raises:
            ProcessDiedError: It left no document.
            OpprofError: Its document cannot be used.
        """
        run, _ = measure(self._arguments(node_ids), self._seeded(hash_seed), timeout=timeout)
        return run

    def tried(self, *, timeout: float | None) -> tuple[Run, Listing]:
        """What a first process measures of all tests, and what it imports; it also fills all caches.

        It leaves a trace of each test in `traces`: no process that is judged should do that beside.

        Args:
            timeout: Seconds after which it is ended; None waits for ever.

        Raises:
            ExperimentError: It ended without a document.
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
        return [*self.options, *(self.tests[node_id] for node_id in node_ids)]

    def _seeded(self, hash_seed: int) -> Spot:
        return self.spot.told({"PYTHONHASHSEED": str(hash_seed)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Base and head, with the tests that both have.

    Attributes:
        only_head: The tests that the base does not have, with pytest's arguments for them.
        policy: The head's rules for exact gates, and what was accepted there.
    """

    base: Bench
    head: Bench
    only_head: Mapping[str, str]
    policy: Policy

    def told(self, variables: Mapping[str, str]) -> Sides:
        """The same, with these variables too."""
        base, head = (replace(one, spot=one.spot.told(variables)) for one in (self.base, self.head))
        return replace(self, base=base, head=head)


def prepare(plan: Plan, *, base: Path, head: Path, place: Path, locks: tuple[int, ...]) -> Sides:
    """Build both sides, and put the head's tests where the base's are.

    Args:
        plan: What each side's setup runs with ``OPPROF_SIDE`` set, what measures it, and how.
        base: The top of the base's work tree, which is ours to change.
        head: The top of the head's, which is the user's.
        place: An empty folder for what processes leave.
        locks: See `session.Spot`.

    Raises:
        ExperimentError: A side does not build or collect, or there is no test that both have.
        OpprofError: The head's gates, or what was accepted, cannot be read.
    """
    base, head = base.resolve(), head.resolve()
    environment = inherited(has_its_own=bool(plan.python))
    spots: Mapping[Side, Spot] = {
        side: _built(
            Spot(
                python=plan.python,
                folder=top / plan.prefix,
                environment=environment,
                place=place / side,
                locks=locks,
            ),
            side=side,
            setup=plan.setup,
        )
        for side, top in ((Side.BASE, base), (Side.HEAD, head))
    }
    head_list = list_tests(plan.arguments, spots[Side.HEAD])
    wanted = _wanted(head_list)
    spots = led_apart(spots, head_list, base=base, head=head, has_its_own=bool(plan.python))
    base_list = _list_base(
        wanted, head_list, root=counterpart(head_list.root, head=head, base=base), spot=spots[Side.BASE]
    )
    known = {test.node_id for test in base_list.tests}
    common = [test for test in wanted if test.node_id in known]
    if not common:
        many = len(wanted)
        tests = f"none of {many} tests is" if many > 1 else f"the test {wanted[0].node_id} is not"
        raise ExperimentError(f"there is nothing to compare: {tests} in the base")
    copy_tests((test.path for test in common), source=head_list.root, to=base_list.root)
    return Sides(
        base=_bench(Side.BASE, spots[Side.BASE], base_list, common, plan=plan),
        head=_bench(Side.HEAD, spots[Side.HEAD], head_list, common, plan=plan),
        only_head={test.node_id: test.argument for test in wanted if test.node_id not in known},
        policy=Policy(
            ini=parse_gate_options(head_list.ini_gates, where="opprof_gate"),
            command_line=parse_gate_options(head_list.gates),
            accepted=read_accepted(project_folder(head_list.root)),
        ),
    )


def _built(spot: Spot, *, side: Side, setup: str) -> Spot:
    if not spot.folder.is_dir():
        raise ExperimentError(f"the {side} has no folder {spot.folder}: start in a folder of both sides")
    spot.place.mkdir()
    return made_ready(spot, setup=setup, side=side, whose=f"the {side}")


def _bench(side: Side, spot: Spot, listing: Listing, common: Iterable[ListedTest], *, plan: Plan) -> Bench:
    arguments = {test.node_id: test.argument for test in listing.tests}
    tests = {test.node_id: arguments[test.node_id] for test in common}
    timing = (f"--opprof-timed-steps={plan.steps}", f"--opprof-timed-max-time={plan.max_time:g}")
    options = (*listing.arguments, *timing, "--opprof-fail-on=none")
    return Bench(side=side, spot=spot, options=options, tests=tests)


def made_ready(spot: Spot, *, setup: str, side: str, whose: str) -> Spot:
    """A spot once it is built, with the interpreter that is there then.

    Args:
        spot: Its interpreter is a path from its folder on, the name of a program, or "" for this interpreter.
        setup: The user's command that builds it; "" for none.
        side: What the command finds in the variable `OPPROF_SIDE`.
        whose: "the base", for a sentence.

    Raises:
        ExperimentError: It does not build, has no interpreter, or one without this release of ours. Where it
            does not build, the sentence is followed by its last lines, and a note has all of them.
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
    """Check that the base's tests ran the base's code.

    Args:
        listing: Of a process that ran them.
        whose: "the base", for a sentence.
        base: The top of the base's work tree.
        head: That of the head's.

    Raises:
        ExperimentError: They imported a module of the head's, as of a project installed in editable mode,
            or of a copy of the project that is installed for both.
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


def copy_tests(paths: Iterable[str], *, source: Path, to: Path) -> None:
    """Copy test files, and make each ``conftest.py`` on the way to them what it is at their source.

    Args:
        paths: From the root folders on.
        source: Pytest's root folder of the side whose tests these are.
        to: That of the other.
    """
    files = {PurePosixPath(path) for path in paths}
    conftests = {folder / _CONFTEST for path in files for folder in path.parents}
    for path in sorted(files | conftests):
        if (source / path).exists():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / path, to / path)
        else:
            (to / path).unlink(missing_ok=True)


def inherited(*, has_its_own: bool) -> dict[str, str]:
    """What a fresh process gets of this one's variables.

    Args:
        has_its_own: It has an environment of its own. Not ours, then: installers look for that.
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


def _list_base(wanted: Sequence[ListedTest], head: Listing, *, root: Path, spot: Spot) -> Listing:
    """What the base itself has in the files of the wanted tests: a test that it lacks has no times there."""
    files = {test.argument.partition("::")[0]: root / test.path for test in wanted}
    there = [argument for argument, path in files.items() if path.exists()]
    if not there:
        return replace(head, root=root, arguments=(), options=(), tests=())
    # The head's files come in their place within a second: bytecode of the one would pass for the other's.
    unwritten = spot.told({"PYTHONDONTWRITEBYTECODE": "1"})
    return list_tests([*head.options, f"--rootdir={root}", *there], unwritten)
