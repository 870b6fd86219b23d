"""Both sides of an A/B made ready: the base's code under the head's tests, built, and seen to run."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_opprof.errors import ExperimentError
from pytest_opprof.experiment.interleave import Side
from pytest_opprof.experiment.session import (
    ListedTest,
    Listing,
    ProcessDiedError,
    list_tests,
    measure,
    measure_and_list,
    run,
)
from pytest_opprof.experiment.worktree import without_git
from pytest_opprof.results.run import Run

_CONFTEST: Final = "conftest.py"
# What an outer pytest, its plugins or a coverage tool would leave for the processes to stumble over.
_NOT_INHERITED: Final = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_", "PYTEST_VERSION", "COV_CORE_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How each process times a test.

    Attributes:
        steps: How many steps, at least.
        max_time: How much longer it may look for undisturbed ones, seconds.
    """

    steps: int
    max_time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A side that can be measured.

    Attributes:
        side: Which.
        folder: Where pytest starts.
        options: What pytest is given beside the tests.
        tests: From a test's node id to pytest's argument for it.
        environment: All variables but PYTHONHASHSEED.
        place: A folder for what its processes leave.
    """

    side: Side
    folder: Path
    options: tuple[str, ...]
    tests: Mapping[str, str]
    environment: Mapping[str, str]
    place: Path

    @property
    def traces(self) -> Path:
        """The folder of the traces of the process that it was tried with."""
        return self.place / "traces"

    def measured(self, node_ids: Iterable[str], *, timing: Timing, hash_seed: int, timeout: float) -> Run:
        """What one fresh process measures of these tests.

        Args:
            node_ids: Of `tests`.
            timing: How each is timed.
            hash_seed: The process's PYTHONHASHSEED.
            timeout: Seconds after which it is ended.

        Raises:
            ProcessDiedError: It left no document.
            OpprofError: Its document cannot be used.
        """
        return measure(
            self._arguments(node_ids, timing=timing),
            folder=self.folder,
            environment=self._seeded(hash_seed),
            place=self.place,
            timeout=timeout,
        )

    def tried(self, *, timing: Timing, timeout: float | None) -> tuple[Run, Listing]:
        """What a first process measures of all tests, and what it imports; it also fills all caches.

        It leaves a trace of each test in `traces`: no process that is judged should do that beside.

        Args:
            timing: How each is timed.
            timeout: Seconds after which it is ended; None waits for ever.

        Raises:
            ExperimentError: It ended without a document.
        """
        try:
            return measure_and_list(
                [*self._arguments(self.tests, timing=timing), f"--opprof-traces={self.traces}"],
                folder=self.folder,
                environment=self._seeded(1),
                place=self.place,
                timeout=timeout,
            )
        except ProcessDiedError as error:
            raise ExperimentError(f"the tests cannot be run on the {self.side}: {error}") from error

    def told(self, variables: Mapping[str, str]) -> Bench:
        """The same, with these variables too."""
        return replace(self, environment={**self.environment, **variables})

    def _arguments(self, node_ids: Iterable[str], *, timing: Timing) -> list[str]:
        return [
            *self.options,
            f"--opprof-timed-steps={timing.steps}",
            f"--opprof-timed-max-time={timing.max_time:g}",
            "--opprof-fail-on=none",
            *(self.tests[node_id] for node_id in node_ids),
        ]

    def _seeded(self, hash_seed: int) -> dict[str, str]:
        return {**self.environment, "PYTHONHASHSEED": str(hash_seed)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Base and head, with the tests that both have.

    Attributes:
        base: The one.
        head: The other.
        only_head: The tests that the base does not have, with pytest's arguments for them.
    """

    base: Bench
    head: Bench
    only_head: Mapping[str, str]

    def bench(self, side: Side) -> Bench:
        """One of them."""
        return self.base if side is Side.BASE else self.head

    def told(self, variables: Mapping[str, str]) -> Sides:
        """The same, with these variables too."""
        return replace(self, base=self.base.told(variables), head=self.head.told(variables))


def prepare(
    *, base: Path, head: Path, prefix: str, arguments: Sequence[str], setup: str | None, place: Path
) -> Sides:
    """Build both sides, and put the head's tests where the base's are.

    Args:
        base: The top of the base's work tree, which is ours to change.
        head: The top of the head's, which is the user's.
        prefix: The folder below them that pytest starts in; "" for the top.
        arguments: What the user gives pytest.
        setup: A command for the shell, run in each side's folder with ``OPPROF_SIDE`` set.
        place: An empty folder for what processes leave.

    Raises:
        ExperimentError: A side does not build or collect, or there is no test that both have.
    """
    base, head = base.resolve(), head.resolve()
    spots: Mapping[Side, _Spot] = {
        side: _Spot(folder=top / prefix, environment=inherited(os.environ), place=place / side)
        for side, top in ((Side.BASE, base), (Side.HEAD, head))
    }
    _build(spots, setup=setup)
    head_list = spots[Side.HEAD].listed(arguments)
    wanted = _wanted(head_list)
    spots = _led_apart(spots, head_list, base=base, head=head)
    base_list = _list_base(
        wanted, head_list, root=_moved(head_list.root, head=head, base=base), spot=spots[Side.BASE]
    )
    known = {test.node_id for test in base_list.tests}
    common = [test for test in wanted if test.node_id in known]
    if not common:
        many = len(wanted)
        tests = f"none of {many} tests is" if many > 1 else f"the test {wanted[0].node_id} is not"
        raise ExperimentError(f"there is nothing to compare: {tests} in the base")
    copy_tests((test.path for test in common), source=head_list.root, to=base_list.root)
    return Sides(
        base=spots[Side.BASE].bench(Side.BASE, base_list, common),
        head=spots[Side.HEAD].bench(Side.HEAD, head_list, common),
        only_head={test.node_id: test.argument for test in wanted if test.node_id not in known},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spot:
    """Where a side's processes run: their folder, their variables, and a folder for what they leave."""

    folder: Path
    environment: Mapping[str, str]
    place: Path

    def listed(self, arguments: Sequence[str]) -> Listing:
        return list_tests(arguments, folder=self.folder, environment=self.environment, place=self.place)

    def bench(self, side: Side, listing: Listing, common: Iterable[ListedTest]) -> Bench:
        arguments = {test.node_id: test.argument for test in listing.tests}
        return Bench(
            side=side,
            folder=self.folder,
            options=listing.arguments,
            tests={test.node_id: arguments[test.node_id] for test in common},
            environment=self.environment,
            place=self.place,
        )


def _build(spots: Mapping[Side, _Spot], *, setup: str | None) -> None:
    for side, spot in spots.items():
        if not spot.folder.is_dir():
            raise ExperimentError(f"the {side} has no folder {spot.folder}: start where both sides have one")
        spot.place.mkdir()
        if setup:
            set_up(setup, side=side, folder=spot.folder, environment=spot.environment)


def set_up(command: str, *, side: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Run the user's command that builds a side.

    Raises:
        ExperimentError: It fails; the sentence is followed by its last lines.
    """
    done = run(["/bin/sh", "-c", command], folder=folder, environment={**environment, "OPPROF_SIDE": side})
    if done.code:
        raise ExperimentError(
            f"the {side} does not build: `{command}` in {folder}: {done.ending}:\n{done.tail}"
        )


def refuse_strangers(listing: Listing, *, base: Path, head: Path) -> None:
    """Check that the base's tests ran the base's code.

    Raises:
        ExperimentError: They imported a module of the head's, as of a project installed in editable mode.
    """
    base, head = base.resolve(), head.resolve()
    for name, file in sorted(listing.modules.items()):
        path = Path(file).resolve()
        if path.is_relative_to(head) and not path.is_relative_to(base) and not _is_installed(path):
            raise ExperimentError(
                f"the base's tests import {name} from the head: {path}. It is installed in editable mode: "
                'name its folder to pytest, as `pythonpath = ["src"]` does in the ini file of both sides'
            )


def copy_tests(paths: Iterable[str], *, source: Path, to: Path) -> None:
    """Copy test files, and make each ``conftest.py`` on the way to them what it is at their source.

    Args:
        paths: From the root folders on.
        source: pytest's root folder of the side whose tests these are.
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


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """What a fresh process gets of this one's variables."""
    return {
        name: value for name, value in without_git(environment).items() if not name.startswith(_NOT_INHERITED)
    }


def _wanted(listing: Listing) -> list[ListedTest]:
    wanted = [test for test in listing.tests if test.is_marked and test.is_chosen]
    if not wanted:
        raise ExperimentError(
            "no test with @pytest.mark.profile is among those asked for: mark one, or name others"
        )
    return wanted


def _list_base(wanted: Sequence[ListedTest], head: Listing, *, root: Path, spot: _Spot) -> Listing:
    """What the base itself has in the files of the wanted tests: a test that it lacks has no times there."""
    files = {test.argument.partition("::")[0]: root / test.path for test in wanted}
    there = [argument for argument, path in files.items() if path.exists()]
    if not there:
        return Listing(root=root, arguments=(), options=(), sys_path=(), modules={}, tests=())
    # The head's files come in their place within a second: bytecode of the one would pass for the other's.
    unwritten = replace(spot, environment={**spot.environment, "PYTHONDONTWRITEBYTECODE": "1"})
    return unwritten.listed([*head.options, f"--rootdir={root}", *there])


def _led_apart(
    spots: Mapping[Side, _Spot], listing: Listing, *, base: Path, head: Path
) -> Mapping[Side, _Spot]:
    """The sides with variables that lead each to its own code.

    Where PYTHONPATH or a project in editable mode leads to the head, the base's leads to its counterpart.
    """
    variables = spots[Side.HEAD].environment
    given = [entry for entry in variables.get("PYTHONPATH", "").split(os.pathsep) if entry]
    stdlib = sysconfig.get_path("stdlib")
    entries = list(listing.sys_path)
    # What stands behind the standard library comes from site-packages and its .pth files.
    behind = entries[entries.index(stdlib) :] if stdlib in entries else []
    editable = [
        entry
        for entry in behind
        if Path(entry).resolve().is_relative_to(head) and not _is_installed(Path(entry))
    ]
    of_head = [*given, *editable]
    if not of_head:
        return spots
    of_side = {
        Side.BASE: [str(_moved(Path(entry), head=head, base=base)) for entry in of_head],
        Side.HEAD: of_head,
    }
    return {
        side: replace(spot, environment={**variables, "PYTHONPATH": os.pathsep.join(of_side[side])})
        for side, spot in spots.items()
    }


def _moved(path: Path, *, head: Path, base: Path) -> Path:
    """The base's counterpart of a path in the head; any other path as it is."""
    resolved = path.resolve()
    return base / resolved.relative_to(head) if resolved.is_relative_to(head) else path


def _is_installed(path: Path) -> bool:
    """Whether a file belongs to the interpreter and what is installed for it, wherever that is."""
    prefixes = (Path(sys.prefix), Path(sys.base_prefix))
    return "site-packages" in path.parts or any(path.is_relative_to(prefix.resolve()) for prefix in prefixes)
