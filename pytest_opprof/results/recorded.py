"""Finished windows as parts of a result: their cycles, their sources, their losses."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from pytest_opprof.capture.torch_ops import OF_WORK, WORK, imported_torch
from pytest_opprof.events.user_frames import callers_of_places, places_of_ops, places_of_sites
from pytest_opprof.metrics import Source, host
from pytest_opprof.results.rows import Cycle
from pytest_opprof.results.run import CaptureStats
from pytest_opprof.units import EVERY_PPM, parts_per_million

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_opprof.capture.recording import Recording
    from pytest_opprof.capture.torch_compile import Compilations

OF_TORCH: Final = frozenset({"ops", "ops-itt"})
_PARTS: Final = {
    host.BYTES.name: attrgetter("nbytes"),
    host.NODES.name: attrgetter("nodes"),
    host.FLOPS.name: attrgetter("flops"),
    host.RETAINED.name: attrgetter("retained"),
}


def cycle_of(recording: Recording) -> Cycle:
    """A window of this process, with its steps, its memory and the lines that called ops."""
    called_from = recording.called_from()
    groups, device = recording.groups_with_device_work()
    return Cycle(
        steps=len(recording.steps),
        groups=groups,
        tree=recording.call_tree(),
        memory=recording.memory_use()[0],
        device_memory=recording.memory_use(on_device=True)[0],
        places=places_of_sites(called_from) or places_of_ops(recording),
        callers=callers_of_places(called_from),
        parts={metric: places_of_sites(called_from, amount) for metric, amount in _PARTS.items()},
        device=device,
        totals=_compiled(recording.compilations),
        functions=_reasons(recording.compilations),
        tells_views=True,
    )


def _compiled(steps: Sequence[Compilations]) -> dict[str, list[int]]:
    if not steps:
        return {}
    return {
        host.GRAPHS.name: [step.graphs for step in steps],
        host.RECOMPILES.name: [_sum(step.recompiles) for step in steps],
        host.GRAPH_BREAKS.name: [_sum(step.graph_breaks) for step in steps],
    }


def _reasons(steps: Sequence[Compilations]) -> dict[str, Mapping[str, int]]:
    """Those of the step with most."""
    found = {
        host.RECOMPILES.name: max((step.recompiles for step in steps), key=_sum, default={}),
        host.GRAPH_BREAKS.name: max((step.graph_breaks for step in steps), key=_sum, default={}),
    }
    return {name: reasons for name, reasons in found.items() if reasons}


def _sum(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


def sources_of(recordings: Sequence[Recording], *, asked_for: frozenset[str]) -> tuple[str, ...]:
    """The sources of all windows. If torch was not imported, all of its ops were seen: none."""
    heard = [recording.sources for recording in recordings]
    common = [source for source in (heard[0] if heard else ()) if all(source in one for one in heard)]
    if heard and imported_torch() is None:
        common += sorted(asked_for & OF_TORCH)
        if WORK in asked_for:
            common += sorted(OF_WORK)
            common += [] if host.MEMORY_RETAINED.answers(common) else [Source.RETAINED]
    if heard and asked_for & OF_TORCH and all(recording.compilations for recording in recordings):
        common.append(Source.COMPILE)
    return tuple(common)


def capture_of(recordings: Sequence[Recording]) -> CaptureStats:
    """The collector's statistics of these windows."""
    stats = [recording.stats for recording in recordings]
    return CaptureStats(
        events=sum(one.events for one in stats),
        dropped=sum(one.dropped for one in stats),
        truncated=any(one.truncated for one in stats),
        threads=max((one.threads for one in stats), default=0),
        unmatched_ends=sum(one.unmatched_ends for one in stats),
        names_overflowed=sum(one.names_overflowed for one in stats),
        crash_recovery=all(one.crash_recovery for one in stats),
        device_partial=any(one.device_partial for one in stats),
        device_dropped=sum(one.device_dropped for one in stats),
        sampled_ppm=min((parts_per_million(one.sampling) for one in stats), default=EVERY_PPM),
    )
