"""Hypothesis strategies for run files: runs as a session could have measured them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from hypothesis import strategies as st

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT, ROW_METRICS
from pytest_opprof.metrics.device import TOTAL_OF_COUNT
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import (
    CaptureStats,
    CarriedFrom,
    Commit,
    Environment,
    Measurement,
    MeasurementStatus,
    OpRow,
    Outcome,
    Run,
    Schedule,
    TestResult,
    Timing,
    TreeNode,
)
from pytest_opprof.results.samples import Samples

# A name, its calls per step, and the callees.
Call: TypeAlias = tuple[Any, ...]
BIGGEST = 2**40
# Any Unicode, lone surrogates and control characters too: names come from users' programs.
names = st.one_of(
    st.sampled_from(
        ["aten::mul", "aten::copy_", "aten::item", "forward", 'a"b\\c', "日本", "\ud800", "a\nb"]
    ),
    st.text(min_size=1, max_size=20),
)
sentences = st.text(max_size=40)
places = st.sampled_from(["f, a.py:1", "g, b.py:20"])
moments = st.datetimes(
    min_value=datetime(2020, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
commit_ids = st.text(alphabet="0123456789abcdef", min_size=40, max_size=40)
commits = st.builds(
    Commit, id=commit_ids, dirty=st.booleans(), branch=st.none() | st.text(min_size=1, max_size=20)
)
fields = st.dictionaries(
    st.sampled_from(["python", "torch", "cpu_model", "cuda"]), st.text(min_size=1, max_size=10), max_size=4
)
environments = st.builds(Environment, fingerprint=fields, details=fields)
schedules = st.builds(
    Schedule, **{name: st.integers(0, 100) for name in ("skip_first", "wait", "warmup", "active", "repeat")}
)
stats = st.builds(
    CaptureStats,
    events=st.integers(0, BIGGEST),
    dropped=st.integers(0, BIGGEST),
    truncated=st.booleans(),
    threads=st.integers(0, 100),
    unmatched_ends=st.integers(0, BIGGEST),
    names_overflowed=st.integers(0, BIGGEST),
    crash_recovery=st.booleans(),
    sampled_ppm=st.integers(1, 1_000_000),
    device_partial=st.booleans(),
    device_dropped=st.integers(0, BIGGEST),
    unmatched_launches=st.integers(0, BIGGEST),
    unmatched_kernels=st.integers(0, BIGGEST),
    untimed_work=st.integers(0, BIGGEST),
)


def samples(steps: int, *, least: int = 0) -> st.SearchStrategy[Samples]:
    """Samples of N steps: equal ones, lists, and summaries of lists."""
    values = st.integers(least, BIGGEST)
    lists = st.lists(values, min_size=steps, max_size=steps).map(Samples.of)
    equal = values.map(lambda value: Samples.constant(value, steps=steps))
    return equal | lists | lists.map(Samples.summarized)


def rows(steps: int) -> st.SearchStrategy[OpRow]:
    """One row of a test with N steps."""
    return st.builds(
        OpRow,
        name=names,
        kind=st.sampled_from(OpKind),
        background=st.booleans(),
        is_async=st.booleans(),
        metrics=st.fixed_dictionaries(
            {COUNT.name: samples(steps)},
            optional={
                name: samples(steps, least=-BIGGEST if metric.is_signed else 0)
                for name, metric in ROW_METRICS.items()
                if metric is not COUNT
            },
        ),
        parent_op=st.none() | names,
        source=st.none() | sentences,
        places=st.dictionaries(sentences, st.integers(0, BIGGEST), max_size=3),
    )


@st.composite
def trees(draw: st.DrawFn) -> tuple[TreeNode, ...]:
    """A call tree, parents before children."""
    return tuple(
        TreeNode(
            parent=draw(st.integers(-1, index - 1)),
            name=draw(names),
            count=draw(st.integers(0, BIGGEST)),
            self_ns=draw(st.integers(0, BIGGEST)),
        )
        for index in range(draw(st.integers(0, 6)))
    )


@st.composite
def results(draw: st.DrawFn, node_id: str = "tests/test_a.py::test_x") -> TestResult:
    """One test, in any state."""
    steps = draw(st.integers(1, 4))
    timed = draw(st.integers(0, 3))
    return TestResult(
        node_id=node_id,
        outcome=draw(st.sampled_from(Outcome)),
        measurement=draw(st.builds(Measurement, status=st.sampled_from(MeasurementStatus), reason=sentences)),
        schedule=draw(st.none() | schedules),
        activities=tuple(draw(st.lists(st.sampled_from(["cpu", "cuda"]), max_size=2))),
        sources=tuple(draw(st.sets(st.sampled_from(["ranges", "ops", "itt", "cuda"])))),
        unheard=draw(st.dictionaries(st.sampled_from(["cuda", "ops"]), sentences, max_size=2)),
        settings=draw(st.dictionaries(st.sampled_from(["determinism", "threads"]), sentences, max_size=2)),
        compile_cache=tuple(draw(st.sets(st.sampled_from(["cold", "warm"])))),
        steps=steps,
        capture=draw(stats),
        processes=draw(st.integers(1, 5)),
        unstable=tuple(draw(st.sets(names.map("{}.count".format), max_size=2))),
        gates=draw(st.dictionaries(st.just("aten::mul.count"), st.sampled_from(["exact", "off", "2%"]))),
        limits=draw(st.dictionaries(st.just("aten::item.count"), st.integers(0, 9) | st.just("<= 3"))),
        accepted=draw(st.dictionaries(st.sampled_from(["ops.count", "aten::item.count"]), moments)),
        timing=Timing(
            steps=timed,
            planned=draw(st.integers(0, 3)),
            disturbed=draw(st.integers(0, timed)),
            probe_ns=draw(st.integers(0, 10**6)),
            reason=draw(sentences),
        ),
        totals=draw(
            st.dictionaries(
                st.sampled_from(["ops.count", "ranges.count", "kernels.count", "total.self_cpu_time_total"]),
                samples(steps),
            )
        )
        | ({"wall_time": draw(samples(timed))} if timed else {}),
        ops=tuple(draw(st.lists(rows(steps), max_size=5, unique_by=lambda row: row.key))),
        ops_omitted=draw(st.integers(0, 3)),
        lines=draw(st.dictionaries(places, sentences)),
        callers=draw(st.dictionaries(places, st.lists(places, max_size=2).map(tuple))),
        tree=draw(trees()),
        carried_from=draw(
            st.none()
            | st.builds(
                CarriedFrom, run_id=st.just("abc"), created=moments, commit=st.none() | st.just("1a2b3c4")
            )
        ),
    )


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of a few tests."""
    node_ids = draw(st.lists(names.map("tests/test_a.py::{}".format), max_size=3, unique=True))
    return Run(
        run_id=draw(st.text(alphabet="0123456789abcdef", min_size=1, max_size=32)),
        created=draw(moments),
        opprof_version="0.1.0",
        name=draw(st.none() | st.just("main")),
        commit=draw(st.none() | commits),
        environment=draw(environments),
        notes=tuple(draw(st.lists(sentences, max_size=2))),
        tests=tuple(draw(results(node_id)) for node_id in node_ids),
    )


@st.composite
def measured(draw: st.DrawFn) -> TestResult:
    """A test that passed and was measured completely, equal in every step; totals match the rows."""
    steps = draw(st.integers(1, 4))
    counts = draw(st.dictionaries(st.sampled_from(_OPS), st.integers(1, 9)))
    return simple_test(counts, steps=steps)


_OPS = ("aten::mul", "aten::addmm", "aten::copy_", "aten::clone", "aten::item", "aten::relu")


def simple_test(counts: Mapping[str, int], *, steps: int = 3, **others: Any) -> TestResult:
    """A complete measurement with N calls of each op in every step."""

    def each(value: int) -> Samples:
        return Samples.constant(value, steps=steps)

    ops = tuple(
        OpRow(
            name=name,
            kind=OpKind.OP if "::" in name else OpKind.RANGE,
            metrics={
                "count": each(count),
                "cpu_time_total": each(count * 2_000),
                "self_cpu_time_total": each(count * 1_000),
            },
        )
        for name, count in counts.items()
        if count
    )
    of_ops = sum(row.count.low for row in ops if row.kind is OpKind.OP)
    totals = {
        "ops.count": each(of_ops),
        "ranges.count": each(sum(row.count.low for row in ops) - of_ops),
        "total.self_cpu_time_total": each(sum(counts.values()) * 1_000),
    }
    defaults: dict[str, Any] = {
        "node_id": "tests/test_a.py::test_x",
        "sources": ("ranges", "ops"),
        "steps": steps,
        "processes": 2,
        "totals": totals,
        "ops": ops,
    }
    return TestResult(**(defaults | others))


def calling(*calls: Call, steps: int = 3, **others: Any) -> TestResult:
    """A complete measurement with a call tree, and its rows.

    Args:
        calls: What the test calls in every step: a name, the total count, and the callees.
        steps: The number of steps.
        others: As in `simple_test`.
    """
    counts: Counter[str] = Counter()
    tree = [TreeNode(parent=-1, name=STEP_NAME, count=steps, self_ns=0)]
    waiting = [(0, call) for call in reversed(calls)]
    while waiting:
        parent, (name, count, *inside) = waiting.pop()
        counts[name] += count
        waiting += [(len(tree), call) for call in reversed(inside)]
        tree.append(TreeNode(parent=parent, name=name, count=count * steps, self_ns=1_000))
    return simple_test(counts, steps=steps, **({"tree": tuple(tree)} | others))


def cuda_test(device: dict[str, dict[str, int]], *, steps: int = 3, **others: Any) -> TestResult:
    """A complete measurement of ops, each called once per step; a kernel for each launching op.

    Args:
        device: The device work of each op, by metric name.
        steps: The number of steps.
        others: As in `simple_test`.
    """
    bare = simple_test(dict.fromkeys(device, 1), steps=steps)
    rows = [
        row.with_metrics(
            **{name: Samples.constant(value, steps=steps) for name, value in device[row.name].items()}
        )
        for row in bare.ops
    ]
    rows += [
        OpRow(
            name=f"kernel of {name}",
            kind=OpKind.KERNEL,
            metrics={"count": Samples.constant(metrics["kernels"], steps=steps)},
            parent_op=name,
        )
        for name, metrics in device.items()
        if metrics.get("kernels")
    ]
    totals = {
        whole.name: Samples.constant(sum(metrics.get(name, 0) for metrics in device.values()), steps=steps)
        for name, whole in TOTAL_OF_COUNT.items()
    }
    defaults = {"sources": ("ranges", "ops", "cuda"), "ops": tuple(rows), "totals": {**bare.totals, **totals}}
    return replace(bare, **(defaults | others))


def simple_run(*tests: TestResult, **others: Any) -> Run:
    """A run of these tests."""
    defaults: dict[str, Any] = {
        "run_id": "abc",
        "created": datetime(2026, 1, 2, tzinfo=UTC),
        "opprof_version": "0.1.0",
        "environment": Environment(fingerprint={"python": "3.11", "torch": "2.13.0"}),
        "tests": tests,
    }
    return Run(**(defaults | others))
