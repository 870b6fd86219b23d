"""The ops that a change of times is attributed to."""

from support.documents.ab_runs import MS, TEST, near, one_test, side, timed_test
from support.documents.judged_times import BASE, SAME, SLOWER, judged
from support.documents.strategies import simple_run

from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.results.run import Run, TestResult


def test_more_calls_are_named_as_the_cause() -> None:
    def more(wall_ns: int) -> TestResult:
        return one_test(wall_ns, count=3)

    found = compare_times(side(BASE), side(SLOWER, more))
    test = found.tests[0]
    assert test.verdict is Verdict.REGRESSED, "the exact gate needs no confirmation"
    assert test.reason.startswith("1 more op in each step than")
    assert "certified in 12 processes" in test.reason
    assert test.cause.endswith("µs: more calls, 2 -> 3")


def test_more_ops_regress_with_equal_times() -> None:
    found = judged(side(BASE), side(SAME, lambda wall_ns: one_test(wall_ns, count=3)))
    assert found.verdict is Verdict.REGRESSED
    assert found.cause.startswith("aten::addmm +1")


def test_count_that_one_process_sees_otherwise_gates_nothing() -> None:
    base = side(BASE)
    base[3] = side([BASE[3]], lambda wall_ns: one_test(wall_ns, count=3))[0]
    assert judged(base, side(SAME)).verdict is Verdict.PASS


def test_change_spread_over_many_ops_is_reported() -> None:
    def spread(wall_ns: int) -> TestResult:
        return timed_test([wall_ns] * 3, ops={f"op_{at}": (1, wall_ns // 20) for at in range(20)})

    noisy = near(round(4.4 * MS), seed=3, spread=0.01)
    found = judged(side(BASE, spread), side(noisy, spread))
    assert found.cause.startswith("op_")
    assert found.cause.count("same calls, slower") == 2


def test_largest_part_is_named_if_none_is_significant() -> None:
    def runs(wall_ns: int, op_ns: list[int]) -> list[Run]:
        tests = (timed_test([wall_ns] * 3, ops={"aten::mm": (1, each)}, node_id=TEST) for each in op_ns)
        return [simple_run(test) for test in tests]

    base = runs(8 * MS, [1 * MS] * 4 + [9 * MS] * 8)
    head = runs(12 * MS, [MS // 2] * 2 + [5 * MS] * 10)
    found = judged(base, head)
    assert found.cause == "mostly aten::mm +4.00 ms: same calls, slower (by itself within noise)"


def test_combined_rounds_separate_an_op_from_noise() -> None:
    def runs(wall_ns: int, op_ns: list[int]) -> list[Run]:
        tests = (timed_test([wall_ns] * 3, ops={"aten::mm": (1, each)}, node_id=TEST) for each in op_ns)
        return [simple_run(test) for test in tests]

    base = [MS + at * at * MS // 100 for at in range(12)]
    sides = runs(8 * MS, base), runs(12 * MS, [time + MS // 4 for time in base])
    alone, together = (judged(*sides, confirmation=again).ops for again in (None, sides))
    assert [op.is_significant for op in (*alone, *together)] == [False, True]


def test_no_op_is_named_where_none_stands_out() -> None:
    def other(wall_ns: int) -> TestResult:
        return timed_test([wall_ns] * 3, ops={"aten::mm": (1, MS)}, node_id=TEST)

    assert judged(side(BASE, other), side(SLOWER, other)).cause == "no single op stands out"
