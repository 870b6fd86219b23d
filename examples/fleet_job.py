"""A job of many ranks, made of one rank's real trace: what `make demo-fleet` shows.

A model of synchronised collectives moves the times of the trace. Between two collectives a rank computes, by its own
speed; in a collective it waits until the last rank has come. Each rank's clock is off, and each rank's work varies.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

Event = dict[str, Any]
_VARIES = 0.01  # of the work between two collectives, a standard deviation
_CLOCKS_US = 300.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is planted.

    Attributes:
        slower: By rank, how many times as long its computing takes.
        kernel: A kernel of which the name has this takes `kernel_factor` times as long, on every rank.
        more: By op, how often it is called once more in each step.
    """

    ranks: int = 64
    slower: dict[int, float] = field(default_factory=dict)
    kernel: str = ""
    kernel_factor: float = 1.0
    more: dict[str, int] = field(default_factory=dict)
    seed: int = 1


@dataclass(frozen=True)
class _Stretch:
    """From one collective's end to the next one's: computing until `begin`, then the collective until `end`."""

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


def rank_events(
    events: list[Event], of: list[_Stretch], came: tuple[list[float], list[float]], ends: list[float], origin: float
) -> list[tuple[Event, float, float]]:
    """Each event with its time and duration on one rank, by the true clock.

    Until a collective, time passes by the rank's speed; within it, by the clock; and at its end all of the waiting
    has passed. Work on the device is not stretched by waiting, what the host does is.
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
        if event.get("cat") == "kernel" and "nccl" not in event["name"]:
            at = max(bisect_right(starts, event["ts"]) - 1, 0)
            duration *= factors[at]
        elif duration:
            duration = max(moved(event["ts"] + duration) - start, 0.0)
        found.append((event, start, duration))
    return found


def write_job(source: Path, folder: Path, plan: Plan) -> None:
    """Write a trace for each rank."""
    opened = gzip.open(source, "rt") if source.suffix == ".gz" else source.open()
    with opened as file:
        base = json.load(file)
    timed = [event for event in base["traceEvents"] if event.get("ph") == "X" and event.get("cat") != "Trace"]
    flows = {"ac2g", "fwdbwd"}
    rest = [event for event in base["traceEvents"] if event.get("ph") == "M" and event.get("cat") not in flows]
    timed = _planted(timed, plan)
    of = stretches(timed)
    origin = min(event["ts"] for event in timed)
    chance = random.Random(plan.seed)
    came = arrivals(of, plan, chance, origin=origin)
    lengths = [one.end - one.begin for one in of]
    last = [max(begins[at] for begins, _ in came) for at in range(len(of))]
    ends = [begin + length for begin, length in zip(last, lengths, strict=True)]
    members = json.dumps({key: value for key, value in base.items() if key not in {"traceEvents", "distributedInfo"}})
    texts = {id(event): _parts(event, plan.ranks) for event in timed}
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(plan.ranks):
        offset = chance.gauss(0, _CLOCKS_US)
        lines = [json.dumps(event) for event in rest]
        for event, start, duration in rank_events(timed, of, came[rank], ends, origin):
            head, tail = texts[id(event)]
            lines.append(f'{head}"ts": {start + offset:.3f}, "dur": {duration:.3f}, {tail}')
        info = {"backend": "nccl", "rank": rank, "world_size": plan.ranks}
        text = f'{{"distributedInfo": {json.dumps(info)}, {members[1:-1]}, "traceEvents": [{",".join(lines)}]}}'
        (folder / f"rank{rank}.json").write_text(text)


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


def main() -> None:
    """Write two jobs: rank 13 of both computes 8 % slower, and the second has two planted regressions."""
    parser = argparse.ArgumentParser(description="Make two jobs of 64 ranks from one rank's real trace.")
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=64)
    args = parser.parse_args()
    for job, seed, kernel_factor, more in (("monday", 1, 1.0, {}), ("tuesday", 2, 1.1, {"aten::item": 2})):
        plan = Plan(
            ranks=args.ranks, slower={13: 1.08}, kernel="cudnn", kernel_factor=kernel_factor, more=more, seed=seed
        )
        write_job(args.source, args.folder / job, plan)
        print(f"{args.folder / job}: {args.ranks} traces")


if __name__ == "__main__":
    main()
