"""Absolute budgets."""

from dataclasses import replace

import pytest
from support.documents.strategies import simple_test

from pytest_opprof.compare.limits import evaluate_limits, parse_limits
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import Source
from pytest_opprof.results.run import CaptureStats, OpRow, TestResult
from pytest_opprof.results.samples import Samples

TEST = simple_test({"aten::item": 3, "aten::mul": 2, "forward": 1})


def judged(limits: object, test: TestResult = TEST) -> list[Verdict]:
    limited = replace(test, limits=parse_limits(limits, where="limits of test_x"))
    return [result.verdict for result in evaluate_limits(limited)]


@pytest.mark.parametrize(
    ("path", "limit", "verdict"),
    [
        ("aten::item.count", 3, Verdict.PASS),
        ("aten::item.count", 2, Verdict.REGRESSED),
        ("aten::clone.count", 0, Verdict.PASS),
        ("aten::clone.count", ">= 1", Verdict.REGRESSED),
        ("ops.count", "<= 5", Verdict.PASS),
        ("ops.count", "< 5", Verdict.REGRESSED),
        ("ranges.count", "== 1", Verdict.PASS),
        ("aten::*.count", 5, Verdict.PASS),
        ("aten::*.count", 4, Verdict.REGRESSED),
        ("total.self_cpu_time_total", "<= 6 us", Verdict.PASS),
        ("total.self_cpu_time_total", "<= 5 us", Verdict.REGRESSED),
        ("syncs.count", 0, Verdict.INCONCLUSIVE),
        ("cpu_memory.allocated", "<= 64 MiB", Verdict.INCONCLUSIVE),
    ],
)
def test_budgets_are_judged(path: str, limit: object, verdict: Verdict) -> None:
    assert judged({path: limit}) == [verdict]


def test_presets_are_expanded() -> None:
    limits = parse_limits(["no_sync", {"aten::item.count": 0}], where="x")
    assert limits == {"syncs.count": 0, "aten::item.count": 0}
    assert parse_limits("no_host_copy", where="x") == {"host_copies.count": 0}
    assert parse_limits({}, where="x") == {}


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ("no_snyc", "unknown preset 'no_snyc' in limits of test_x (did you mean 'no_sync'?)"),
        (
            ["zzz"],
            "unknown preset 'zzz' in limits of test_x (there are: no_sync, no_host_copy, no_recompile)",
        ),
        (5, "limits of test_x: limits are a dict, a preset's name, or a list of both, not 5"),
        ([5], "limits of test_x: 5 is neither a preset's name nor a dict of limits"),
        ({"ops.count": "few"}, "limits of test_x: ops.count: 'few' is not a count: write it like '12'"),
        (
            {"aten::itme.count": 0},
            "unknown metric 'aten::itme.count' in limits of test_x (did you mean 'aten::item.count'?)",
        ),
        (
            {"ops.count": 2**63 - 1},
            "limits of test_x: ops.count: 9223372036854775807 is above 9007199254740991, the most in a JSON file",
        ),
        ({5: 0}, "unknown metric '5' in limits of test_x"),
    ],
)
def test_misunderstood_limits_are_usage_errors(limits: object, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_limits(limits, where="limits of test_x", known_ops={"aten::item", "aten::mul"})
    assert str(caught.value).startswith(sentence)


def test_a_limit_as_text_may_be_above_what_a_file_keeps() -> None:
    limits = {"flops.total": "<= 100 PFLOPs"}
    assert parse_limits(limits, where="x") == limits


def test_an_older_files_limit_that_a_marker_may_no_longer_have_is_inconclusive() -> None:
    test = replace(simple_test({"aten::mul": 4}), limits={"python.scaling": 1200, "ops.count": 4})
    scaling, count = evaluate_limits(test)
    assert (scaling.verdict, count.verdict) == (Verdict.INCONCLUSIVE, Verdict.PASS)
    assert "1200 is not a limit: write it like '<= 1.5'" in scaling.reason


def test_every_step_must_keep_its_budget() -> None:
    uneven = replace(TEST, totals={"ops.count": Samples.of([5, 9, 5])})
    assert judged({"ops.count": 9}, uneven) == [Verdict.PASS]
    assert judged({"ops.count": 8}, uneven) == [Verdict.REGRESSED]


def test_unknown_steps_are_inconclusive() -> None:
    blurred = replace(TEST, totals={"ops.count": Samples.of([5, 9, 5]).summarized()})
    assert judged({"ops.count": 8}, blurred) == [Verdict.INCONCLUSIVE]
    assert judged({"ops.count": 4}, blurred) == [Verdict.REGRESSED]
    assert judged({"ops.count": 9}, blurred) == [Verdict.PASS]


def test_fastest_step_decides_time_limits() -> None:
    noisy = replace(TEST, totals={"total.self_cpu_time_total": Samples.of([9_000, 4_000, 9_000])})
    assert judged({"total.self_cpu_time_total": "<= 5 us"}, noisy) == [Verdict.PASS]


def test_dropped_events_prove_only_the_worst() -> None:
    dropped = replace(TEST, capture=CaptureStats(dropped=1))
    assert judged({"aten::item.count": 3}, dropped) == [Verdict.INCONCLUSIVE]
    assert judged({"aten::item.count": 2}, dropped) == [Verdict.REGRESSED]
    assert judged({"aten::item.count": ">= 9"}, dropped) == [Verdict.INCONCLUSIVE]


def test_memory_of_dropped_events_proves_nothing() -> None:
    """A free may be among the dropped events, and then less memory was in use."""
    names = ("cpu_memory.peak", "cpu_memory.allocated")
    totals = {**TEST.totals, **{name: Samples.constant(128, steps=TEST.steps) for name in names}}
    whole = replace(TEST, totals=totals, sources=(*TEST.sources, "memory"))
    limits = dict.fromkeys(names, "<= 64 B")
    assert judged(limits, whole) == [Verdict.REGRESSED] * 2
    dropped = replace(whole, capture=CaptureStats(dropped=1))
    assert judged(limits, dropped) == [Verdict.INCONCLUSIVE] * 2


def test_a_sample_proves_only_the_worst_of_counts() -> None:
    base = simple_test({"aten::item": 2, "forward": 1})
    totals = {**base.totals, "flops.total": Samples.constant(64, steps=base.steps)}
    sampled = replace(
        base, totals=totals, sources=(*base.sources, "flops"), capture=CaptureStats(sampled_ppm=10_000)
    )
    assert judged({"aten::item.count": 3}, sampled) == [Verdict.INCONCLUSIVE]
    assert judged({"aten::mul.count": 0}, sampled) == [Verdict.INCONCLUSIVE], "it may have run"
    assert judged({"aten::item.count": 1}, sampled) == [Verdict.REGRESSED]
    assert judged({"ops.count": 3}, sampled) == [Verdict.INCONCLUSIVE]
    assert judged({"flops.total": 64}, sampled) == [Verdict.INCONCLUSIVE]
    assert judged({"flops.total": 63}, sampled) == [Verdict.REGRESSED]
    assert judged({"aten::item.self_cpu_time_total": "<= 1 s"}, sampled) == [Verdict.INCONCLUSIVE]
    assert judged({"aten::item.self_cpu_time_total": "< 0 s"}, sampled) == [Verdict.INCONCLUSIVE]
    (result,) = evaluate_limits(replace(sampled, limits={"aten::mul.count": 0}))
    assert result.reason == "only 1% of the ops were recorded (sampling)"


def test_ranges_of_a_sample_are_known() -> None:
    sampled = replace(simple_test({"forward": 2}), capture=CaptureStats(sampled_ppm=10_000))
    assert judged({"forward.count": 2, "ranges.count": 2}, sampled) == [Verdict.PASS] * 2
    assert judged({"forward.count": 1, "ranges.count": 1}, sampled) == [Verdict.REGRESSED] * 2
    assert judged({"AddmmBackward0.count": 0}, sampled) == [Verdict.INCONCLUSIVE], "no range for sure"


def test_op_limit_needs_ops() -> None:
    without = replace(TEST, sources=("ranges",), ops=())
    assert judged({"aten::item.count": 0}, without) == [Verdict.INCONCLUSIVE]
    assert judged({"forward.count": 0}, without) == [Verdict.PASS]


def test_omitted_rows_are_inconclusive() -> None:
    assert judged({"aten::add.count": 0}, replace(TEST, ops_omitted=1)) == [Verdict.INCONCLUSIVE]


def test_names_that_found_no_room_are_inconclusive() -> None:
    nameless = replace(TEST, capture=CaptureStats(names_overflowed=1))
    assert judged({"aten::add.count": 0, "ops.count": 5}, nameless) == [Verdict.INCONCLUSIVE, Verdict.PASS]


@pytest.mark.parametrize(
    ("path", "limit", "verdict"),
    [
        ("aten::item.count", 2, Verdict.INCONCLUSIVE),
        ("aten::item.count", 3, Verdict.PASS),
        ("aten::item.count", ">= 1", Verdict.INCONCLUSIVE),
        ("aten::*.count", 4, Verdict.INCONCLUSIVE),
        ("ops.count", 9, Verdict.INCONCLUSIVE),
        ("ops.count", 10, Verdict.PASS),
        ("ops.count", 4, Verdict.REGRESSED),
        ("ranges.count", "== 1", Verdict.INCONCLUSIVE),
        ("flops.total", 29, Verdict.INCONCLUSIVE),
        ("flops.total", 30, Verdict.PASS),
        ("aten::mul.self_cpu_time_total", 0, Verdict.PASS),
    ],
)
def test_limit_decided_by_background_work_is_inconclusive(path: str, limit: object, verdict: Verdict) -> None:
    """Nobody knows whose work it is: it neither breaks a limit nor keeps it."""
    flops = Samples.constant(10, steps=TEST.steps)
    rows: tuple[OpRow, ...] = tuple(
        replace(row.with_metrics(flops=flops), background=True) for row in TEST.ops
    )
    sources = (*TEST.sources, Source.FLOPS)
    totals = {**TEST.totals, "flops.total": Samples.constant(0, steps=TEST.steps)}
    assert judged({path: limit}, replace(TEST, ops=rows, totals=totals, sources=sources)) == [verdict]


@pytest.mark.parametrize(
    ("path", "limit", "verdict"),
    [
        ("ops.count", 5, Verdict.PASS),
        ("aten::mul.count", 2, Verdict.INCONCLUSIVE),
        ("cpu_memory.allocated", 99, Verdict.REGRESSED),
    ],
)
def test_views_and_memory_given_back_in_the_background_decide_nothing(
    path: str, limit: int, verdict: Verdict
) -> None:
    row = TEST.ops[1]
    given = Samples.constant(-64, steps=TEST.steps)
    beside = replace(row.with_metrics(views=row.count, cpu_memory=given), background=True)
    totals = {**TEST.totals, "cpu_memory.allocated": Samples.constant(100, steps=TEST.steps)}
    test = replace(TEST, ops=(*TEST.ops, beside), totals=totals, sources=(*TEST.sources, Source.MEMORY))
    assert judged({path: limit}, test) == [verdict]
