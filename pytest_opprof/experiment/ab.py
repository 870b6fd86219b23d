"""``opprof ab``: the same tests on base and head, in fresh processes that take turns on this machine."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from pytest_opprof.capture.speed import USUAL_NS, probes, usual_ns
from pytest_opprof.compare.timing.comparison import TimeComparison, TimeSettings
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.timing.samples import readings_by_test, short_of_undisturbed, timed
from pytest_opprof.compare.timing.verdicts import control_of
from pytest_opprof.errors import ExperimentError
from pytest_opprof.experiment.commits import Head, base_of, head_of
from pytest_opprof.experiment.experiment_store import Death, Kept, resumable
from pytest_opprof.experiment.interleave import BLOCK, Side, Turn, turns
from pytest_opprof.experiment.place import Place
from pytest_opprof.experiment.progress import Progress
from pytest_opprof.experiment.request import Request, kept_for
from pytest_opprof.experiment.session import ProcessDiedError, check_timeout
from pytest_opprof.experiment.sides import Bench, Sides, prepare, refuse_strangers
from pytest_opprof.experiment.traces import keep_pairs
from pytest_opprof.experiment.worktree import Worktree, checked_out, git, top_folder
from pytest_opprof.results.run import Commit, Outcome, Run
from pytest_opprof.wording import counted, listed

_FIRST: Final = "first"
_CONFIRM: Final = "confirm"
# A side of which more processes die in a round than this is broken, and no longer worth the wait.
_MOST_DEATHS: Final = 3
_SHORT: Final = 7
# How many times the processes that were asked for may run where others disturb them.
_MOST_TIMES: Final = 2
# A process that takes so many times what both uncounted ones took hangs; honest ones take about half of it.
_PATIENCE: Final = 20
_LEAST_PATIENCE_S: Final = 300


class Watcher(Protocol):
    """Who waits for an experiment."""

    def tell(self, sentence: str) -> None:
        """Something that the user should know now."""

    def progress(self, progress: Progress) -> None:
        """A process has ended, or a round begins."""

    def unfinished(self, kept: Kept) -> None:
        """The experiment ends before its end; what it measured is kept."""


def run_ab(request: Request, *, folder: Path, watcher: Watcher) -> TimeComparison:
    """Measure both sides, judge, and confirm what was found; notes say which processes died.

    Args:
        folder: Where he stands: pytest starts there, and in the base's counterpart of it.

    Raises:
        UsageError: There is no such base, nothing to go on with, or no time to wait.
        ExperimentError: A side cannot be checked out, built, collected or measured.
        OpprofError: What was measured cannot be kept.
    """
    check_timeout(request.timeout)
    top, head = top_folder(folder), head_of(folder)
    base = base_of(request.base, head, folder=folder)
    prefix = git(folder, "rev-parse", "--show-prefix").strip("\n")
    kept = kept_for(request, top=top, base=base, head=head, prefix=prefix)
    if request.resume:
        watcher.tell(f"resuming {kept.name}; unfinished: {resumable(top)}")
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
        sides = prepare(
            kept.plan,
            base=worktree.folder,
            head=top,
            place=place.folder,
            locks=(worktree.lock, place.lock),
        )
        experiment = _Experiment(
            sides=sides,
            kept=kept,
            head=head,
            request=request,
            top=top,
            watcher=watcher,
        )
        comparison = experiment.compared(worktree)
        kept.finish()
    return comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class _Experiment:
    """Both sides ready, and where what they measure is kept."""

    sides: Sides
    kept: Kept
    head: Head
    request: Request
    top: Path
    watcher: Watcher

    def compared(self, worktree: Worktree) -> TimeComparison:
        """Try both sides, measure them, judge, and measure once more what was found."""
        settings, began = self.request.settings, time.monotonic()
        tried, usual = self._tried(worktree)
        patience = self.request.timeout or max(_LEAST_PATIENCE_S, _PATIENCE * (time.monotonic() - began))
        sides = self.sides.told({USUAL_NS: str(usual)})
        node_ids = list(timed(readings_by_test(*tried), settings=TimeSettings()))
        _refuse_failures(tried[0][0], node_ids)
        left_out = [_without(side[0], node_ids) for side in tried]
        self.watcher.tell(self._headline(len(node_ids)))
        base, head = self._round(_FIRST, node_ids, sides=sides, timeout=patience) if node_ids else ([], [])
        runs = _with_tests(base, left_out[0]), _with_tests(head, left_out[1])
        policy = sides.policy
        comparison = compare_times(*runs, settings=settings, policy=policy)
        if comparison.flagged:
            again = self._round(_CONFIRM, comparison.flagged, sides=sides, timeout=patience)
            comparison = compare_times(*runs, settings=settings, policy=policy, confirmation=again)
        traces = keep_pairs(
            comparison, base=self.sides.base.traces, head=self.sides.head.traces, top=self.top
        )
        return replace(comparison, notes=(*comparison.notes, *self._notes(), *traces))

    def _tried(self, worktree: Worktree) -> tuple[tuple[list[Run], list[Run]], int]:
        """One process a side that is not counted: it fills caches, and shows what cannot be compared.

        Before and after, it is found what a probe of the machine's speed takes as a rule.
        """
        found = [*probes()]
        base, listing = self.sides.base.tried(timeout=self.request.timeout)
        found += probes()
        refuse_strangers(listing, whose="the base", base=worktree.folder, head=self.top)
        with_new = replace(self.sides.head, tests={**self.sides.head.tests, **self.sides.only_head})
        head, _ = with_new.tried(timeout=self.request.timeout)
        self._check_head()
        found += probes()
        return ([self._named(base, Side.BASE)], [self._named(head, Side.HEAD)]), usual_ns(found)

    def _headline(self, tests: int) -> str:
        plan = self.kept.plan
        sides = f"base {self.request.base}@{plan.base[:_SHORT]} | head {self.head.commit.short}"
        return f"{sides} | {counted(tests, 'test')} | {plan.processes} processes a side, interleaved"

    def _round(
        self, name: str, node_ids: Sequence[str], *, sides: Sides, timeout: float
    ) -> tuple[list[Run], list[Run]]:
        """Both sides' runs, in the order of their turns; what an earlier start measured is not run again.

        Tests that met a disturbed machine get more processes, up to as many again as were asked for.
        """
        plan = self.kept.plan
        order = turns(_MOST_TIMES * plan.processes, seed=plan.seed + (name == _CONFIRM))
        planned = 2 * plan.processes
        runs: dict[Side, list[Run]] = {side: [] for side in Side}
        began, done, measured = time.monotonic(), 0, 0

        def told(*, is_over: bool = False) -> None:
            total = done if is_over else max(planned, (done // BLOCK + 1) * BLOCK)
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
        """One process's run, kept; a process that dies is said, counted, and replaced."""
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
        died = [one for one in self.kept.deaths() if (one.round, one.side) == (death.round, death.side)]
        if len(died) > _MOST_DEATHS:
            raise ExperimentError(f"{len(died)} processes of the {death.side} died; the last: {death.how}")
        self.watcher.tell(f"process {death.index + 1} ({death.side}) died and is run again: {death.how}")

    def _check_head(self) -> None:
        """What is measured must stay what it is."""
        if head_of(self.top).key != self.head.key:
            raise ExperimentError(
                "the head's files changed during the experiment: start again, and do not edit them until it "
                "ends"
            )

    def _named(self, run: Run, side: Side) -> Run:
        """A run under its side's commit: the base's own has the head's tests in it, and so looks changed."""
        if side is Side.HEAD:
            return replace(run, commit=self.head.commit)
        commit = Commit(id=self.kept.plan.base, dirty=False)
        return replace(run, name=self.request.base, commit=commit)

    def _progress(
        self, name: str, runs: dict[Side, list[Run]], done: int, total: int, *, began: float, measured: int
    ) -> Progress:
        elapsed = time.monotonic() - began
        noise_ppm = None
        if all(runs.values()):
            tests = readings_by_test(runs[Side.BASE], runs[Side.HEAD])
            control, _ = control_of(timed(tests, settings=TimeSettings()), settings=TimeSettings())
            noise_ppm = control.noise_ppm
        return Progress(
            round="confirmation" if name == _CONFIRM else "",
            done=done,
            total=total,
            elapsed_s=elapsed,
            left_s=elapsed / measured * (total - done) if measured else None,
            noise_ppm=noise_ppm,
        )

    def _notes(self) -> Iterator[str]:
        died = Counter(death.side for death in self.kept.deaths())
        if died:
            sides = " and ".join(f"{count} of the {side}" for side, count in sorted(died.items()))
            yield f"processes that died and were run again: {sides}"
        if self.kept.plan.base == self.head.key:
            yield "base and head are the same code: this only shows how quiet the machine is"


@contextlib.contextmanager
def _told_when_cut_short(kept: Kept, watcher: Watcher) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if kept.done:
            watcher.unfinished(kept)
        else:
            kept.discard()
        raise


def _refuse_failures(base: Run, node_ids: Sequence[str]) -> None:
    """Refuse to end well where nothing at all can be judged."""
    failed = [test.node_id for test in base.tests if test.outcome in {Outcome.FAILED, Outcome.ERROR}]
    if failed and not node_ids:
        raise ExperimentError(f"there is nothing to compare: {listed(failed, most=1)} failed in the base")


def _without(run: Run, node_ids: Iterable[str]) -> Run:
    measured = set(node_ids)
    return replace(run, tests=tuple(test for test in run.tests if test.node_id not in measured))


def _with_tests(runs: Sequence[Run], tried: Run) -> list[Run]:
    """The runs, with what the first process found of tests that it showed not to be comparable."""
    if not runs:
        return [tried]
    return [replace(runs[0], tests=(*runs[0].tests, *tried.tests)), *runs[1:]]
