"""``opprof ab``: run the same tests on base and head, in fresh processes that take turns on this machine."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from pytest_opprof.baselines.ancestry import SHORT
from pytest_opprof.capture.speed import USUAL_NS, probes, usual_ns
from pytest_opprof.compare.timing.comparison import TimeComparison, TimeSettings
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.timing.samples import readings_by_test, short_of_undisturbed, timed
from pytest_opprof.compare.timing.verdicts import noise_of
from pytest_opprof.errors import ExperimentError
from pytest_opprof.experiment.commits import Head, base_of, changed_since, head_of
from pytest_opprof.experiment.experiment_store import Death, Kept, resumable
from pytest_opprof.experiment.interleave import BLOCK, Side, Turn, turns
from pytest_opprof.experiment.place import Place
from pytest_opprof.experiment.progress import Progress
from pytest_opprof.experiment.request import Request, kept_for
from pytest_opprof.experiment.session import ProcessDiedError, check_timeout
from pytest_opprof.experiment.sides import Bench, Sides, build, prepare, refuse_strangers
from pytest_opprof.experiment.traces import keep_pairs
from pytest_opprof.experiment.worktree import Worktree, checked_out, git, top_folder
from pytest_opprof.results.run import Commit, Outcome, Run
from pytest_opprof.wording import counted, listed

_FIRST: Final = "first"
_CONFIRM: Final = "confirm"
# If more processes of a side die in a round, the side is broken and the experiment ends.
_MOST_DEATHS: Final = 3
# On a busy machine, up to this many times the requested processes run.
_MOST_TIMES: Final = 2
# A process hangs if it takes this many times as long as both uncounted processes together.
_PATIENCE: Final = 20
_LEAST_PATIENCE_S: Final = 300


class Watcher(Protocol):
    """Shows an experiment to the user."""

    def tell(self, sentence: str) -> None:
        """Show a sentence now."""

    def progress(self, progress: Progress) -> None:
        """Show how far a round is: called when it begins, and after each process."""

    def unfinished(self, kept: Kept) -> None:
        """Say that the experiment was interrupted and its measurements are kept."""


class _HeadChangedError(ExperimentError):
    """What was measured is of other files, so the experiment cannot be resumed."""


def run_ab(
    request: Request,
    *,
    folder: Path,
    root: Path,
    watcher: Watcher,
    deliver: Callable[[TimeComparison], object],
) -> TimeComparison:
    """Measure both sides, judge them, and confirm the flagged tests; notes count the processes that died.

    Pytest starts in `folder`, and in its counterpart in the base. The ``.opprof`` in `root` keeps what was
    measured. `deliver` gets the result: if it raises, the experiment can be resumed, which judges again.
    Raises `UsageError` without such a base or an experiment to resume, and `ExperimentError` if a side cannot
    be built or measured.
    """
    check_timeout(request.timeout)
    top, head = top_folder(folder), head_of(folder)
    base = base_of(request.base, head, folder=folder)
    prefix = git(folder, "rev-parse", "--show-prefix").strip("\n")
    kept = kept_for(request, root=root, base=base, head=head, prefix=prefix)
    if request.resume:
        watcher.tell(f"resuming {kept.name}; unfinished: {resumable(root)}")
    with (
        kept.held(),
        _told_when_cut_short(kept, watcher),
        Place("ab") as place,
        checked_out(folder, base) as worktree,
    ):
        if worktree.submodules and not kept.plan.setup:
            raise ExperimentError(
                f"the base has submodules ({', '.join(worktree.submodules)}), which are empty in a "
                "work tree of its own: give --setup 'test $OPPROF_SIDE = head || git submodule update --init'"
            )
        spots = build(
            kept.plan,
            base=worktree.folder,
            head=top,
            place=place.folder,
            locks=(worktree.lock, place.lock),
        )
        if changed := changed_since(head, top):
            raise _HeadChangedError(
                f"`{kept.plan.setup}` changed the head's files: {changed}. Start again; if it changes them "
                "each time, --setup must not do that"
            )
        sides = prepare(kept.plan, spots, base=worktree.folder, head=top)
        experiment = _Experiment(
            sides=sides,
            kept=kept,
            died_before=len(kept.deaths()),
            head=head,
            request=request,
            top=top,
            root=root,
            watcher=watcher,
        )
        comparison = experiment.compared(worktree)
        deliver(comparison)
        kept.finish()
    return comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class _Experiment:
    """Both prepared sides, and the store of their measurements."""

    sides: Sides
    kept: Kept
    died_before: int  # how many processes died before this start
    head: Head
    request: Request
    top: Path
    root: Path
    watcher: Watcher

    def compared(self, worktree: Worktree) -> TimeComparison:
        """Try both sides, measure and judge them, and measure the flagged tests again."""
        settings, began = self.request.settings, time.monotonic()
        tried, usual = self._tried(worktree)
        took_s = time.monotonic() - began
        sides = self.sides.told({USUAL_NS: str(usual)})
        node_ids = list(timed(readings_by_test(*tried), settings=TimeSettings()))
        _refuse_failures(tried[0][0], node_ids)
        patience = self.request.timeout or default_timeout(
            took_s, max_time=self.kept.plan.max_time, tests=len(node_ids)
        )
        self.watcher.tell(self._headline(len(node_ids)))
        base, head = self._round(_FIRST, node_ids, sides=sides, timeout=patience) if node_ids else ([], [])
        runs = _with_others(base, tried[0][0], node_ids), _with_others(head, tried[1][0], node_ids)
        policy = sides.policy
        comparison = compare_times(*runs, settings=settings, policy=policy)
        if comparison.flagged:
            again = self._round(_CONFIRM, comparison.flagged, sides=sides, timeout=patience)
            comparison = compare_times(*runs, settings=settings, policy=policy, confirmation=again)
        traces = keep_pairs(
            comparison, base=self.sides.base.traces, head=self.sides.head.traces, root=self.root
        )
        return replace(comparison, notes=(*comparison.notes, *self._notes(), *traces))

    def _tried(self, worktree: Worktree) -> tuple[tuple[list[Run], list[Run]], int]:
        """Run an uncounted process per side: it fills caches, and shows which tests cannot be compared.

        Probes before, between and after them find the machine's usual speed.
        """
        found = [*probes()]
        base, listing = self.sides.base.tried(timeout=self.request.timeout)
        found += probes()
        refuse_strangers(listing, whose="the base", base=worktree.folder, head=self.top)
        with_new = replace(self.sides.head, tests=self.sides.head.tests + self.sides.only_head)
        head, _ = with_new.tried(timeout=self.request.timeout)
        self._check_head()
        found += probes()
        return ([self._named(base, Side.BASE)], [self._named(head, Side.HEAD)]), usual_ns(found)

    def _headline(self, tests: int) -> str:
        plan = self.kept.plan
        sides = f"base {self.request.base}@{plan.base[:SHORT]} | head {self.head.commit.short}"
        return f"{sides} | {counted(tests, 'test')} | {plan.processes} processes a side, interleaved"

    def _round(
        self, name: str, node_ids: Sequence[str], *, sides: Sides, timeout: float
    ) -> tuple[list[Run], list[Run]]:
        """Both sides' runs, in the order of their turns; stored runs are not measured again.

        Tests with too few undisturbed processes get more, up to twice the requested number.
        """
        plan = self.kept.plan
        order = turns(_MOST_TIMES * plan.processes, seed=plan.seed + (name == _CONFIRM))
        planned = 2 * plan.processes
        runs: dict[Side, list[Run]] = {side: [] for side in Side}
        began, done, measured = time.monotonic(), 0, 0

        def told(*, is_over: bool = False) -> None:
            total = done if is_over else planned if done < planned else len(order)
            self.watcher.progress(self._progress(name, runs, done, total, began=began, measured=measured))

        for done, turn in enumerate(order):
            if done >= planned and (done == planned or done % BLOCK == 0):
                tests = readings_by_test(runs[Side.BASE], runs[Side.HEAD])
                node_ids = short_of_undisturbed(tests, wanted=plan.processes)
                if not node_ids:
                    break
                if done == planned:
                    busy = (
                        f"the machine was busy: {listed(node_ids, most=1)} had too few undisturbed processes"
                    )
                    self.watcher.tell(f"{busy}, so up to {len(order) - planned} more run")
            told()
            run = self.kept.run(name, turn)
            if run is None:
                bench = sides.base if turn.side is Side.BASE else sides.head
                run = self._measured(name, turn, node_ids, bench=bench, timeout=timeout)
                measured += 1
            runs[turn.side].append(run)
        else:
            done = len(order)
        told(is_over=True)
        return runs[Side.BASE], runs[Side.HEAD]

    def _measured(
        self, name: str, turn: Turn, node_ids: Sequence[str], *, bench: Bench, timeout: float
    ) -> Run:
        """Run a process and store its run; a process that dies is reported, counted and run again."""
        while True:
            try:
                run = bench.measured(node_ids, hash_seed=turn.hash_seed, timeout=timeout)
            except ProcessDiedError as error:
                self._bury(Death(round=name, index=turn.index, side=turn.side, how=str(error)))
                continue
            self._check_head()
            run = self._named(run, turn.side)
            self.kept.keep(name, turn, run)
            return run

    def _bury(self, death: Death) -> None:
        self.kept.bury(death)
        since = self.kept.deaths()[self.died_before :]
        died = [one for one in since if (one.round, one.side) == (death.round, death.side)]
        if len(died) > _MOST_DEATHS:
            raise ExperimentError(f"{len(died)} processes of the {death.side} died; the last: {death.how}")
        self.watcher.tell(f"process {death.index + 1} ({death.side}) died and is run again: {death.how}")

    def _check_head(self) -> None:
        """Refuse to go on if the head's files changed."""
        if changed := changed_since(self.head, self.top):
            raise _HeadChangedError(
                f"the head's files changed during the experiment: {changed}. Start again, and do not edit "
                "them until it ends"
            )

    def _named(self, run: Run, side: Side) -> Run:
        """A run under its side's commit: the base's work tree has the head's tests, so it looks changed."""
        if side is Side.HEAD:
            return replace(run, commit=self.head.commit)
        commit = Commit(id=self.kept.plan.base, dirty=False)
        return replace(run, name=self.request.base, commit=commit)

    def _progress(
        self, name: str, runs: dict[Side, list[Run]], done: int, total: int, *, began: float, measured: int
    ) -> Progress:
        elapsed = time.monotonic() - began
        tests = readings_by_test(runs[Side.BASE], runs[Side.HEAD])
        noise = noise_of(timed(tests, settings=TimeSettings()))
        return Progress(
            round="confirmation" if name == _CONFIRM else "",
            done=done,
            total=total,
            elapsed_s=elapsed,
            left_s=elapsed / measured * (total - done) if measured else None,
            noise_ppm=max(noise.values(), default=None),
        )

    def _notes(self) -> Iterator[str]:
        if self.sides.only_base:
            yield f"not measured, because only the base has them: {listed(self.sides.only_base, most=3)}"
        died = Counter(death.side for death in self.kept.deaths())
        if died:
            sides = " and ".join(f"{count} of the {side}" for side, count in sorted(died.items()))
            yield f"processes that died and were run again: {sides}"
        if self.kept.plan.base == self.head.key:
            yield "base and head are the same code: this only shows how quiet the machine is"


def default_timeout(took_s: float, *, max_time: float, tests: int) -> float:
    """The seconds after which a process counts as hung.

    Args:
        took_s: How long the uncounted processes took together. The machine may have been quiet.
        max_time: How long each test may wait for a quiet machine, twice: see `Plan`.
        tests: How many tests a process has.
    """
    return max(_LEAST_PATIENCE_S, _PATIENCE * took_s) + 2 * max_time * tests


@contextlib.contextmanager
def _told_when_cut_short(kept: Kept, watcher: Watcher) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if not kept.done:
            kept.discard()
        elif not isinstance(error, _HeadChangedError):
            watcher.unfinished(kept)
        raise


def _refuse_failures(base: Run, node_ids: Sequence[str]) -> None:
    """Fail if no test can be compared because they failed in the base."""
    failed = [test.node_id for test in base.tests if test.outcome in {Outcome.FAILED, Outcome.ERROR}]
    if failed and not node_ids:
        raise ExperimentError(f"there is nothing to compare: {listed(failed, most=1)} failed in the base")


def _with_others(runs: Sequence[Run], tried: Run, measured: Iterable[str]) -> list[Run]:
    """The runs, with the uncounted process's results of tests that cannot be compared."""
    known = set(measured)
    others = [test for test in tried.tests if test.node_id not in known]
    first, *later = runs or [replace(tried, tests=())]
    return [replace(first, tests=(*first.tests, *others)), *later]
