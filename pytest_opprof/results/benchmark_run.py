"""A run document made from a file of pytest-benchmark, so that its times can be a baseline."""

from __future__ import annotations

import math
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Never

from pytest_opprof.metrics import FINGERPRINT_FIELDS, WALL_TIME
from pytest_opprof.release import version
from pytest_opprof.results.document import refusal
from pytest_opprof.results.files import parse, read_bytes, shown
from pytest_opprof.results.names import bounded, canonical_node_id
from pytest_opprof.results.run import Commit, Environment, Run, TestResult, Timing
from pytest_opprof.results.samples import Samples
from pytest_opprof.units import MOST_IN_JSON, NS_IN_S

_KEY: Final = "opprof"
_LONGEST_FIELD: Final = 200
_LONGEST_BRANCH: Final = 1_024
_MOST_ROUNDS: Final = 1_000_000_000
_LONGEST_ROUND_S: Final = 1_000_000.0
_MOST_VALUES: Final = 1_000  # one list in a document
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
_HOW: Final = "pytest --benchmark-json=FILE writes one"


def run_from_benchmarks(path: Path) -> Run:
    """One run with a test for each benchmark, which has its ``wall_time`` and no op."""
    return _Reader(where=shown(path)).run(read_bytes(path), name=path.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads one untrusted file."""

    where: str

    def run(self, data: bytes, *, name: str) -> Run:
        if not data.strip():
            self._refuse("the file is empty")
        document = parse(data, where=self.where)
        benchmarks = self._benchmarks(document)
        tests = {}
        for index, benchmark in enumerate(benchmarks):
            test = self._test(benchmark, at=f"benchmarks[{index}]")
            tests[test.node_id] = test  # after a rerun the last time counts
        machine = self._object(document.get("machine_info") or {}, at="machine_info")
        return Run(
            run_id=secrets.token_hex(8),
            created=self._created(document.get("datetime")),
            opprof_version=version(),
            commit=_commit(self._object(document.get("commit_info") or {}, at="commit_info")),
            environment=Environment(
                fingerprint=fingerprint_of(machine) | _own_fingerprint(document),
                details=details_of(machine),
            ),
            notes=(
                f"imported from {bounded(name, length=_LONGEST_FIELD)} of pytest-benchmark",
                *_twice(benchmarks),
            ),
            tests=tuple(tests.values()),
        )

    def _benchmarks(self, document: Any) -> list[Any]:
        found = document.get("benchmarks") if isinstance(document, dict) else None
        if not isinstance(found, list):
            first = document[0] if isinstance(document, list) and document else document
            if isinstance(first, dict) and first.keys() & {"hits", "_source", "_index"}:
                self._refuse(f"this comes from Elasticsearch, and is not a file of pytest-benchmark; {_HOW}")
            self._refuse(f"this is not a file of pytest-benchmark: it has no list of benchmarks; {_HOW}")
        if not found:
            self._refuse(f"it has no benchmark; {_HOW} if some ran")
        return found

    def _test(self, benchmark: Any, *, at: str) -> TestResult:
        benchmark = self._object(benchmark, at=at)
        name = benchmark.get("fullname")
        if not isinstance(name, str) or not name:
            self._refuse(f"{at}.fullname: {_told(name)} is not a name of a test")
        times = self._times(self._object(benchmark.get("stats"), at=f"{at}.stats"), at=f"{at}.stats")
        if times.total > MOST_IN_JSON:
            self._refuse(f"{at}.stats: its rounds take longer than {MOST_IN_JSON} ns together")
        return TestResult(
            node_id=canonical_node_id(name),
            timing=Timing(steps=times.steps),
            totals={WALL_TIME.name: times},
        )

    def _times(self, stats: dict[str, Any], *, at: str) -> Samples:
        rounds = stats.get("rounds")
        if not isinstance(rounds, int) or isinstance(rounds, bool) or not 1 <= rounds <= _MOST_ROUNDS:
            self._refuse(f"{at}.rounds: {_told(rounds)} is not a number of rounds")
        if "data" in stats:
            data = stats["data"]
            if not isinstance(data, list) or len(data) != rounds:
                self._refuse(f"{at}.data: these are not {rounds} rounds")
            return samples_of_rounds(
                [self._seconds(value, at=f"{at}.data[{index}]") for index, value in enumerate(data)]
            )
        least, most, mean = (
            self._seconds(stats.get(key), at=f"{at}.{key}") for key in ("min", "max", "mean")
        )
        if not least <= mean <= most and not math.isclose(least, most, rel_tol=1e-9):
            self._refuse(f"{at}.mean: {mean} is not between the least and the most, {least} and {most}")
        return samples_of_statistics(rounds=rounds, least_s=least, most_s=most, mean_s=mean)

    def _seconds(self, value: Any, *, at: str) -> float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # An infinity is not JSON, but a number with a large exponent is read as one.
        if not is_number or not 0 <= value <= _LONGEST_ROUND_S:
            self._refuse(f"{at}: {_told(value)} is not a time in seconds")
        return float(value)

    def _created(self, text: Any) -> datetime:
        try:
            found = datetime.fromisoformat(text)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except (TypeError, ValueError, OverflowError):
            self._refuse(f"datetime: {_told(text)} is not a time")

    def _object(self, value: Any, *, at: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._refuse(f"{at}: {_told(value)} is not an object")
        return value

    def _refuse(self, what: str) -> Never:
        raise refusal(self.where, what)


def samples_of_rounds(rounds_s: Sequence[float]) -> Samples:
    """Nanoseconds, for each round the mean of its calls."""
    samples = Samples.of(round(duration * NS_IN_S) for duration in rounds_s)
    return samples if len(rounds_s) <= _MOST_VALUES else samples.summarized()


def samples_of_statistics(*, rounds: int, least_s: float, most_s: float, mean_s: float) -> Samples:
    """The same from statistics of rounds that were not kept: seconds."""
    low, high = round(least_s * NS_IN_S), round(most_s * NS_IN_S)
    # Each is rounded alone, and a sum that contradicts them would be refused.
    total = min(max(round(mean_s * rounds * NS_IN_S), low * rounds), high * rounds)
    return Samples(steps=rounds, total=total, low=low, high=high)


def _told(value: object) -> str:
    return bounded(ascii(value), length=80)


def _commit(info: dict[str, Any]) -> Commit | None:
    """The commit; None outside a repository, and for other systems than git."""
    name, branch = info.get("id"), info.get("branch")
    if not isinstance(name, str) or not _COMMIT.fullmatch(name):
        return None
    # pytest-benchmark writes (unknown) and (detached head).
    if not isinstance(branch, str) or branch.startswith("("):
        branch = ""
    branch = bounded(branch, length=_LONGEST_BRANCH) or None
    return Commit(id=name, dirty=bool(info.get("dirty")), branch=branch)


def _own_fingerprint(document: dict[str, Any]) -> dict[str, str]:
    """Our plugin's fingerprint in the file, which has more, such as torch's version."""
    ours = document.get(_KEY)
    given = ours.get("fingerprint") if isinstance(ours, dict) else None
    fields = given if isinstance(given, dict) else {}
    return {
        name: bounded(value, length=_LONGEST_FIELD)
        for name, value in fields.items()
        if name in FINGERPRINT_FIELDS and isinstance(value, str) and value
    }


def _twice(benchmarks: list[dict[str, Any]]) -> tuple[str, ...]:
    (name, times), *_ = Counter(canonical_node_id(one["fullname"]) for one in benchmarks).most_common(1)
    told = f"{bounded(name, length=_LONGEST_FIELD)} is listed {times} times: the last entry is used"
    return () if times == 1 else (told,)


# Our name of a detail to its path. Not the host's name: documents may be committed.
_DETAILS: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu": ("cpu", "brand_raw"),
    "cpu.frequency": ("cpu", "hz_advertised_friendly"),
    "cpu.l2_cache": ("cpu", "l2_cache_size"),
    "cpu.l3_cache": ("cpu", "l3_cache_size"),
    "kernel": ("release",),
    "python.compiler": ("python_compiler",),
}
# The fields of the fingerprint that it has in the same meaning.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "implementation": ("python_implementation",),
    "machine": ("machine",),
    "cpu_model": ("cpu", "brand_raw"),
    "cpu_count": ("cpu", "count"),
}


def details_of(machine_info: Mapping[str, object]) -> dict[str, str]:
    """Details of the machine for readers, not compared."""
    return _found(machine_info, _DETAILS)


def fingerprint_of(machine_info: Mapping[str, object]) -> dict[str, str]:
    """The known fields that metrics depend on; torch's version is not among them."""
    fields = _found(machine_info, _FIELDS)
    version = machine_info.get("python_version")
    if isinstance(version, str) and version.count(".") >= 1:
        fields["python"] = bounded(".".join(version.split(".")[:2]), length=_LONGEST_FIELD)
    return fields


def _found(machine_info: Mapping[str, object], ways: Mapping[str, Iterable[str]]) -> dict[str, str]:
    values = {name: _at(machine_info, way) for name, way in ways.items()}
    return {name: bounded(str(value), length=_LONGEST_FIELD) for name, value in values.items() if value}


def _at(machine_info: object, way: Iterable[str]) -> str | int | None:
    for key in way:
        machine_info = machine_info.get(key) if isinstance(machine_info, dict) else None
    is_plain = isinstance(machine_info, str | int) and not isinstance(machine_info, bool)
    return machine_info if is_plain else None  # type: ignore[return-value]  # which `is_plain` says
