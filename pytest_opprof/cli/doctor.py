"""``opprof doctor``: what can be captured here, and why not the rest."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_opprof.capture.injection import ITT, NVTX, Injection, library_path
from pytest_opprof.cli.project import Project, add_store, place_of
from pytest_opprof.errors import OpprofError
from pytest_opprof.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line: what was looked at, how it is, and what that means or what to do."""

    part: str
    state: str
    text: str


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell the command line of this command."""
    parser = subparsers.add_parser(
        "doctor",
        help="show what can be captured here, and why the rest cannot",
        epilog="Example: opprof doctor",
    )
    add_store(parser)


def run(args: argparse.Namespace) -> int:
    """Print the findings; 1 when capture does not work at all."""
    findings = list(diagnose(store=args.store))
    width = max(len(finding.part) for finding in findings) + 2
    for finding in findings:
        print(f"{finding.part:<{width}}{finding.state:<10}{finding.text}")
    return int(any(finding.part == "collector" and finding.state != "ok" for finding in findings))


def diagnose(*, store: str | None) -> Iterator[Finding]:
    """Look at everything that a profiled test may need."""
    from pytest_opprof.capture.native import ABSENCE  # noqa: PLC0415  # loads native code

    if ABSENCE is not None:
        yield Finding(part="collector", state="absent", text=str(ABSENCE))
        yield _store(store)
        return
    yield _collector()
    yield _torch_ops()
    yield _cuda()
    yield _python_calls()
    yield _malloc()
    yield _counters()
    yield _injection(ITT, needs="torch is imported")
    yield _injection(NVTX, needs="the first range is emitted")
    yield _store(store)


def _collector() -> Finding:
    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415  # as above

    collector = Collector.instance()
    try:
        collector.open(sources=frozenset({"ranges"}))
    except OpprofError as error:
        return Finding(part="collector", state="broken", text=str(error))
    place = collector.session_path
    where = (
        f"session files in {place.parent}, crash recovery on"
        if place
        else "no folder takes a session file (set OPPROF_DIR): anonymous memory, no crash recovery"
    )
    clock = {"tsc": "tsc (invariant)", "monotonic": "CLOCK_MONOTONIC"}.get(collector.clock, collector.clock)
    return Finding(part="collector", state="ok", text=f"clock: {clock}; {where}")


def _torch_ops() -> Finding:
    from pytest_opprof.capture.observer_build import build_of  # noqa: PLC0415  # loads native code
    from pytest_opprof.capture.torch_build import SUPPORTED  # noqa: PLC0415

    if importlib.util.find_spec("torch") is None:
        return Finding(
            part="torch ops", state="absent", text="torch is not installed; ranges are captured without it"
        )
    try:
        import torch  # noqa: PLC0415  # slow, and asked for by this command only
    except (ImportError, OSError) as error:
        return Finding(part="torch ops", state="broken", text=f"torch cannot be imported: {error}")
    try:
        seen = _record_an_op(torch)
    except OpprofError as error:
        return Finding(
            part="torch ops",
            state="broken",
            text=f"{error}. Tests that run torch are INCONCLUSIVE, unless --opprof-capture=ranges,ops-itt "
            "counts ops by name alone",
        )
    release = f"torch {torch.__version__}"
    if not seen:
        text = f"{release}: the observer was loaded and sees no op. Please report this release of torch"
        return Finding(part="torch ops", state="broken", text=text)
    if not build_of(torch).is_tried:
        text = (
            f"{release} is not one of the supported releases ({SUPPORTED}); the observer works in a first try"
        )
        return Finding(part="torch ops", state="untested", text=text)
    return Finding(part="torch ops", state="ok", text=f"{release}; the observer was built, loaded and tried")


def _record_an_op(torch: Any) -> bool:
    """Whether the observer, compiled if need be, sees an op."""
    from pytest_opprof.capture.collector import Collector  # noqa: PLC0415  # loads native code
    from pytest_opprof.capture.observer_build import load, what_it_waits_for  # noqa: PLC0415

    waiting = what_it_waits_for(torch)
    if waiting:
        print(waiting, file=sys.stderr, flush=True)
    load(torch)
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops"}))
    collector.start()
    torch.ones(2)
    recording = collector.stop()
    return any(recording.name(event) == "aten::ones" for event in range(len(recording)))


def _cuda() -> Finding:
    from pytest_opprof.capture.cuda import CudaState, library, open_cuda, start_driver  # noqa: PLC0415  # native

    failure = start_driver()  # this process is nobody's program: it may start CUDA to see what happens
    if failure is not None:
        return Finding(part="CUDA", state="absent", text=f"{failure}; CPU capture works without it")
    answer = open_cuda()
    states = {CudaState.READY: "ok", CudaState.TAKEN: "taken", CudaState.NO_CUPTI: "absent"}
    return Finding(part="CUDA", state=states.get(answer.state, "broken"), text=answer.reason or library())


def _python_calls() -> Finding:
    way = "sys.monitoring" if hasattr(sys, "monitoring") else "a profile function on each thread"
    return Finding(
        part="Python calls",
        state="ok",
        text=f"by {way}; ask for them: with_stack=True, or --opprof-capture=ranges,ops,python",
    )


def _malloc() -> Finding:
    from pytest_opprof.capture.memory_source import malloc_problem  # noqa: PLC0415  # loads native code

    problem = malloc_problem()
    if problem is not None:
        return Finding(part="malloc", state="absent", text=problem)
    return Finding(part="malloc", state="ok", text="ask for it: --opprof-capture=ranges,ops,memory-malloc")


def _counters() -> Finding:
    from pytest_opprof.capture.counters import COUNTERS, refusal  # noqa: PLC0415  # loads native code

    refusals = {name: refusal(name) for name in COUNTERS}
    counted = [name for name, reason in refusals.items() if reason is None]
    missing: dict[str, list[str]] = {reason: [] for reason in refusals.values() if reason is not None}
    for name, reason in refusals.items():
        if reason is not None:
            missing[reason].append(name)
    why_not = [f"not {', '.join(names)}: {reason}" for reason, names in missing.items()]
    state = "ok" if not missing else "some" if counted else "none"
    return Finding(
        part="counters", state=state, text="; ".join([*filter(None, [", ".join(counted)]), *why_not])
    )


def _injection(injection: Injection, *, needs: str) -> Finding:
    variable = injection.variable
    named = os.environ.get(variable)
    if named == str(library_path()):
        return Finding(part=injection.name, state="ok", text=f"{variable} names our collector")
    if named:
        return Finding(part=injection.name, state="taken", text=f"by another tool: {variable}={named}")
    return Finding(
        part=injection.name,
        state="off",
        text=f"ask for it: --opprof-capture=ranges,ops,{injection.name.lower()}; where {needs} before pytest "
        'reads its options: eval "$(opprof env)"',
    )


def _store(given: str | None) -> Finding:
    from pytest_opprof.baselines.archive import open_store  # noqa: PLC0415
    from pytest_opprof.report.baselines import short_key  # noqa: PLC0415

    try:
        uri, root = place_of(given)
        archive = open_store(uri, root=root, project=Project.here().root)
        newest = [archive.entries(name)[0] for name in archive.names()]
    except OpprofError as error:
        return Finding(part="store", state="broken", text=str(error))
    if not newest:
        fetch = f", or fetch others': {archive.hint}" if archive.hint else ""
        return Finding(
            part="store",
            state="empty",
            text=f"{archive.uri.removesuffix(':')}: record a baseline with pytest --opprof-save=NAME{fetch}",
        )
    count = counted(len(newest), "baseline")
    latest = max(newest, key=lambda entry: entry.created)
    title = f"{latest.name}@{short_key(latest)}"
    return Finding(part="store", state="ok", text=f"{archive.uri.removesuffix(':')}: {count}, newest {title}")
