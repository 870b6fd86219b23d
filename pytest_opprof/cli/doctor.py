"""``opprof doctor``: what can be captured here, and why not the rest."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

from pytest_opprof.capture.injection import ITT, NVTX, Injection, library_path
from pytest_opprof.cli.project import add_store, store_of
from pytest_opprof.errors import OpprofError
from pytest_opprof.wording import counted

HELP = "show what can be captured here, and why the rest cannot"
EXAMPLE = "opprof doctor"

# A part's state, and what it means or what to do.
_Finding: TypeAlias = tuple[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Print the findings; return 1 if nothing can be captured."""
    findings = dict(_diagnosed(store=args.store))
    width = max(map(len, findings)) + 2
    for part, (state, text) in findings.items():
        print(f"{part:<{width}}{state:<10}{text}")
    return int(findings["collector"][0] != "ok")


def _diagnosed(*, store: str | None) -> Iterator[tuple[str, _Finding]]:
    """Check each part that a profiled test may need."""
    from pytest_opprof.capture.native import ABSENCE

    if ABSENCE is not None:
        yield "collector", ("absent", str(ABSENCE))
    else:
        from pytest_opprof.capture.memory_source import malloc_problem

        yield "collector", _collector()
        yield "torch ops", _torch_ops()
        yield "CUDA", _cuda()
        way = "sys.monitoring" if hasattr(sys, "monitoring") else "a profile function on each thread"
        ask = "ask for them: with_stack=True, or --opprof-capture=ranges,ops,python"
        yield "Python calls", ("ok", f"by {way}; {ask}")
        problem = malloc_problem()
        wanted = "ask for it: --opprof-capture=ranges,ops,memory-malloc"
        yield "malloc", ("absent", problem) if problem is not None else ("ok", wanted)
        yield "counters", _counters()
        yield ITT.name, _injection(ITT, needs="torch is imported")
        yield NVTX.name, _injection(NVTX, needs="the first range is emitted")
    yield "store", _store(store)


def _collector() -> _Finding:
    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    try:
        collector.open(sources=frozenset({"ranges"}))
    except OpprofError as error:
        return "broken", str(error)
    place = collector.session_path
    where = (
        f"session files in {place.parent}, crash recovery on"
        if place
        else "no writable session folder (set OPPROF_DIR): anonymous memory, no crash recovery"
    )
    clock = {"tsc": "tsc (invariant)", "monotonic": "CLOCK_MONOTONIC"}.get(collector.clock, collector.clock)
    return "ok", f"clock: {clock}; {where}"


def _torch_ops() -> _Finding:
    from pytest_opprof.capture.observer_build import build_of
    from pytest_opprof.capture.torch_build import SUPPORTED

    if importlib.util.find_spec("torch") is None:
        return "absent", "torch is not installed; ranges are captured without it"
    try:
        import torch  # slow, and asked for by this command only
    except (ImportError, OSError) as error:
        return "broken", f"torch cannot be imported: {error}"
    try:
        seen = _record_an_op(torch)
    except OpprofError as error:
        way_out = "To count ops by name only: --opprof-capture=ranges,ops-itt"
        return "broken", f"{error}. Tests that run torch are INCONCLUSIVE. {way_out}"
    release = f"torch {torch.__version__}"
    if not seen:
        asked = "Please report this release of torch"
        return "broken", f"{release}: the observer was loaded but sees no op. {asked}"
    if not build_of(torch).is_tried:
        known = f"is not a supported release ({SUPPORTED})"
        return "untested", f"{release} {known}, but the observer recorded an op here"
    return "ok", f"{release}; the observer was built, loaded and tried"


def _record_an_op(torch: Any) -> bool:
    """Whether the observer, compiled if need be, sees an op."""
    from pytest_opprof.capture.collector import Collector
    from pytest_opprof.capture.observer_build import load, what_it_waits_for

    if waiting := what_it_waits_for(torch):
        print(waiting, file=sys.stderr, flush=True)
    load(torch)
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops"}))
    collector.start()
    torch.ones(2)
    recording = collector.stop()
    return any(recording.name(event) == "aten::ones" for event in range(len(recording)))


def _cuda() -> _Finding:
    from pytest_opprof.capture.cuda import CudaState, library, open_cuda, start_driver  # native

    failure = start_driver()  # this process runs no user code, so it may start CUDA
    if failure is not None:
        return "absent", f"{failure}; CPU capture works without it"
    answer = open_cuda()
    states = {CudaState.READY: "ok", CudaState.TAKEN: "taken", CudaState.NO_CUPTI: "absent"}
    return states.get(answer.state, "broken"), answer.reason or library()


def _counters() -> _Finding:
    from pytest_opprof.capture.counters import COUNTERS, refusal

    missing: defaultdict[str | None, list[str]] = defaultdict(list)
    for name in COUNTERS:
        missing[refusal(name)].append(name)
    counted = missing.pop(None, [])
    why_not = [f"not {', '.join(names)}: {reason}" for reason, names in missing.items()]
    state = "ok" if not missing else "some" if counted else "none"
    return state, "; ".join([*filter(None, [", ".join(counted)]), *why_not])


def _injection(injection: Injection, *, needs: str) -> _Finding:
    variable = injection.variable
    named = os.environ.get(variable)
    if named == str(library_path()):
        return "ok", f"{variable} names our collector"
    if named:
        return "taken", f"by another tool: {variable}={named}"
    option = f"--opprof-capture=ranges,ops,{injection.name.lower()}"
    return "off", f'ask for it: {option}; if {needs} before pytest reads its options: eval "$(opprof env)"'


def _store(given: str | None) -> _Finding:
    from pytest_opprof.report.baselines import short_key

    try:
        archive = store_of(given)
        newest = [entry for name in archive.names() for entry in archive.entries(name)[:1]]
    except OpprofError as error:
        return "broken", str(error)
    place = archive.uri.removesuffix(":")
    if not newest:
        fetch = f", or fetch others': {archive.store.hint}" if archive.store.hint else ""
        return "empty", f"{place}: record a baseline with pytest --opprof-save=NAME{fetch}"
    count = counted(len(newest), "baseline")
    latest = max(newest, key=lambda entry: entry.created)
    title = f"{latest.name}@{short_key(latest)}"
    return "ok", f"{place}: {count}, newest {title}"
