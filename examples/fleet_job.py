"""Makes a job of many ranks from one rank's real trace, for `make demo-fleet`.

A model of synchronized collectives shifts the times of the trace. Between two collectives a rank computes at
its own speed; in a collective it waits for the last rank. Each rank's clock is off, and its work varies.
"""

from __future__ import annotations

import gzip
import json
import random
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

Event = dict[str, Any]
Lateness = dict[int, list[float]]  # by rank, for each step
_VARIES = 0.01  # relative standard deviation of the work between two collectives
_CLOCKS_US = 300.0
_RING_US = 5.0  # how far apart the ranks of a ring end, on average


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A job, and its planted faults.

    Attributes:
        ranks: The number of ranks.
        slower: By rank, how many times as long its computing takes.
        kernel: Kernels with this text in their name take `kernel_factor` times as long, on every rank.
        more: By op, how many more calls each step has.
        seed: The seed for all random variation.
    """

    ranks: int = 64
    slower: dict[int, float] = field(default_factory=dict)
    kernel: str = ""
    kernel_factor: float = 1.0
    more: dict[str, int] = field(default_factory=dict)
    seed: int = 1


@dataclass(frozen=True)
class _Stretch:
    """The time from one collective to the next: computing until `begin`, then the collective until `end`."""

    begin: float
    end: float


def stretches(events: list[Event]) -> list[_Stretch]:
    """The stretches of a trace, one for each collective of all ranks."""
    found: list[_Stretch] = []
    kernels = [event for event in events if "AllReduce" in event["name"] and event["cat"] == "kernel"]
    for event in sorted(kernels, key=lambda event: event["ts"]):
        if not found or event["ts"] >= found[-1].end:
            found.append(_Stretch(event["ts"], event["ts"] + event["dur"]))
    return found


def arrivals(
    of: list[_Stretch], plan: Plan, chance: random.Random, *, origin: float
) -> list[tuple[list[float], list[float]]]:
    """For each rank, in true time: when it reaches each collective, and its slowdown until then."""
    ranks = range(plan.ranks)
    begins: list[list[float]] = [[] for _ in ranks]
    speeds: list[list[float]] = [[] for _ in ranks]
    now, before = origin, origin
    for one in of:
        for rank in ranks:
            speed = plan.slower.get(rank, 1.0) * max(chance.gauss(1, _VARIES), 0.9)
            speeds[rank].append(speed)
            begins[rank].append(now + (one.begin - before) * speed)
        now = max(begin[-1] for begin in begins) + one.end - one.begin
        before = one.end
    return list(zip(begins, speeds, strict=True))


def lateness(plan: Plan, *, steps: int = 3, collectives: int = 5, step_us: float = 220_000.0) -> Lateness:
    """How late each rank of a job without traces is in each step, in nanoseconds after the median rank.

    Args:
        plan: Only `ranks`, `slower` and `seed` are used.
        steps: The number of steps.
        collectives: The number per step; each takes the last tenth of its part of the step.
        step_us: The duration of a step.
    """
    part = step_us / collectives
    starts = [part * (at + 0.9) for at in range(steps * collectives)]
    chance = random.Random(plan.seed)  # noqa: S311 - it only varies
    came = arrivals([_Stretch(start, start + 0.1 * part) for start in starts], plan, chance, origin=0.0)
    late: Lateness = {rank: [0.0] * steps for rank in range(plan.ranks)}
    for at in range(len(starts)):
        middle = median(begins[at] for begins, _ in came)
        for rank, (begins, _) in enumerate(came):
            late[rank][at // collectives] += (begins[at] - middle) * 1000
    return late


def rank_events(
    events: list[Event],
    of: list[_Stretch],
    came: tuple[list[float], list[float]],
    ends: list[float],
    origin: float,
) -> list[tuple[Event, float, float]]:
    """Each event with its time and duration on one rank, in true time.

    Before a collective, times stretch by the rank's slowdown; within it they do not; its end includes all the
    waiting. Waiting lengthens host events, but not device work.
    """
    begins, speeds = came
    starts = [origin, *(one.end for one in of)]
    truth = [origin, *ends]
    factors = [*speeds, 1.0]

    def moved(moment: float) -> float:
        at = max(bisect_right(starts, moment) - 1, 0)
        if at < len(of) and moment >= of[at].begin:
            return begins[at] + moment - of[at].begin
        return truth[at] + (moment - starts[at]) * factors[at]

    found = []
    for event in events:
        start = moved(event["ts"])
        duration = event.get("dur", 0.0)
        if event["cat"] == "kernel" and not _is_collective(event):
            at = max(bisect_right(starts, event["ts"]) - 1, 0)
            duration *= factors[at]
        elif duration:
            duration = max(moved(event["ts"] + duration) - start, 0.0)
        found.append((event, start, duration))
    return found


def write_job(source: Path, folder: Path, plan: Plan) -> None:
    """Write a trace for each rank, made from the gzipped trace `source`."""
    base = json.loads(gzip.decompress(source.read_bytes()))
    others = [event for event in base["traceEvents"] if event.get("ph") == "M"]
    timed = _planted([event for event in base["traceEvents"] if event.get("ph") == "X"], plan)
    of = stretches(timed)
    origin = min(event["ts"] for event in timed)
    chance = random.Random(plan.seed)  # noqa: S311 - it only varies
    came = arrivals(of, plan, chance, origin=origin)
    ends = [max(begins[at] for begins, _ in came) + one.end - one.begin for at, one in enumerate(of)]
    members = {key: value for key, value in base.items() if key not in {"traceEvents", "distributedInfo"}}
    texts = {id(event): _parts(event, plan.ranks) for event in timed}
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(plan.ranks):
        offset = chance.gauss(0, _CLOCKS_US)
        lines = [json.dumps(event) for event in others]
        for event, start, duration in rank_events(timed, of, came[rank], ends, origin):
            head, tail = texts[id(event)]
            ring = chance.expovariate(1 / _RING_US) if _is_collective(event) else 0
            lines.append(f'{head}"ts": {start + offset:.3f}, "dur": {duration + ring:.3f}, {tail}')
        info = json.dumps({"backend": "nccl", "rank": rank, "world_size": plan.ranks})
        rest = json.dumps(members)[1:-1]
        text = f'{{"distributedInfo": {info}, {rest}, "traceEvents": [{",".join(lines)}]}}'
        (folder / f"rank{rank}.json").write_text(text, encoding="utf-8")


def _is_collective(event: Event) -> bool:
    return event["cat"] == "kernel" and "nccl" in event["name"]


def _parts(event: Event, ranks: int) -> tuple[str, str]:
    """An event's JSON before and after its times."""
    args = dict(event.get("args", {}))
    if "Group size" in args:
        args |= {"Group size": ranks, "Process Group Ranks": json.dumps(list(range(ranks)))}
    members = {key: value for key, value in event.items() if key not in {"ts", "dur", "args"}}
    return json.dumps(members)[:-1] + ", ", f'"args": {json.dumps(args)}}}'


def _planted(events: list[Event], plan: Plan) -> list[Event]:
    found = [
        event | {"dur": event["dur"] * plan.kernel_factor}
        if plan.kernel and plan.kernel in event["name"] and event["cat"] == "kernel"
        else event
        for event in events
    ]
    for name, count in plan.more.items():
        for step in [event for event in events if event["name"].startswith("ProfilerStep#")]:
            same = [
                event
                for event in events
                if event["name"] == name and step["ts"] <= event["ts"] < step["ts"] + step["dur"]
            ]
            found += [event | {"dur": event["dur"] / 2} for event in same[:count]]
    return found
