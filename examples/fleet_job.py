"""A job of many ranks, made of one rank's real trace: what `make demo-fleet` shows.

A model of synchronised collectives moves the times of the trace. Between two collectives a rank computes, by
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
Lateness = dict[int, list[float]]  # by rank, of each step
_VARIES = 0.01  # of the work between two collectives, a standard deviation
_CLOCKS_US = 300.0
_RING_US = 5.0  # the ranks of a ring end apart


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is planted.

    Attributes:
        ranks: How many there are.
        slower: By rank, how many times as long its computing takes.
        kernel: A kernel of which the name has this takes `kernel_factor` times as long, on every rank.
        more: By op, how many more calls each step has.
        seed: Of all that varies.
    """

    ranks: int = 64
    slower: dict[int, float] = field(default_factory=dict)
    kernel: str = ""
    kernel_factor: float = 1.0
    more: dict[str, int] = field(default_factory=dict)
    seed: int = 1


@dataclass(frozen=True)
class _Stretch:
    """From one collective to the next: computing until `begin`, then the collective until `end`."""

    begin: float
    end: float


def stretches(events: list[Event]) -> list[_Stretch]:
    """The collectives that all ranks take part in, one after the other."""
    found: list[_Stretch] = []
    kernels = [event for event in events if "AllReduce" in event["name"] and event["cat"] == "kernel"]
    for event in sorted(kernels, key=lambda event: event["ts"]):
        if not found or event["ts"] >= found[-1].end:
            found.append(_Stretch(event["ts"], event["ts"] + event["dur"]))
    return found


def arrivals(
    of: list[_Stretch], plan: Plan, chance: random.Random, *, origin: float
) -> list[tuple[list[float], list[float]]]:
    """For each rank, by the true clock: when it comes to each collective, and how fast it was until then."""
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
    """How late each rank of a job without traces comes in each step, in nanoseconds after the median rank.

    Args:
        plan: Of it `ranks`, `slower` and `seed` count.
        steps: How many there are.
        collectives: Of each step, the last tenth of the time before each.
        step_us: How long a step takes.
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
    """Each event with its time and duration on one rank, by the true clock.

    Until a collective, time passes by the rank's speed; within it, by the clock; and at its end all of the
    waiting has passed. Work on the device is not stretched by waiting, what the host does is.
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
    """Write a trace for each rank: `source` is a trace in gzip."""
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
    """An event's JSON before and behind its times."""
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
