"""Laws of the judge of times, for all times, and its error rate."""

import os
import random
from collections import Counter

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.documents.ab_runs import MS, many_tests, near, side

from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.results.run import Run

EXAMPLES = 100 if os.environ.get("OPPROF_COUNTS") == "all" else 15


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.8, 1.25))
def test_swapping_sides_turns_regressed_into_improved(seed: int, factor: float) -> None:
    source = random.Random(seed)  # noqa: S311 - numbers to test with
    base, head, base_again, head_again = (
        side(near(round(middle), seed=source.getrandbits(32), spread=0.01))
        for middle in (4 * MS, 4 * MS * factor) * 2
    )
    there = compare_times(base, head, confirmation=(base_again, head_again))
    back = compare_times(head, base, confirmation=(head_again, base_again))
    # only the base is the control: a noisier base raises the floor
    assume(all(quiet(each) for each in (there, back)))
    mirrored = {
        Verdict.REGRESSED: {Verdict.IMPROVED},
        Verdict.IMPROVED: {Verdict.REGRESSED},
        Verdict.PASS: {Verdict.PASS, Verdict.INCONCLUSIVE},
        Verdict.INCONCLUSIVE: {Verdict.PASS},
    }
    assert there.tests[0].verdict is not None
    assert back.tests[0].verdict in mirrored[there.tests[0].verdict]


def quiet(found: TimeComparison) -> bool:
    return not found.control.flagged and (found.control.noise_ppm or 0) <= 30_000


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(st.lists(st.integers(1 * MS, round(1.1 * MS)), min_size=8, max_size=8), min_size=1, max_size=6)
)
def test_side_against_itself_passes(times: list[list[int]]) -> None:
    found = compare_times(many_tests(times), many_tests(times))
    assert found.flagged == ()
    assert set(found.counts) <= {Verdict.PASS} or found.control.flagged


def test_equal_code_is_called_other_no_more_often_than_promised() -> None:
    trials = 200 if os.environ.get("OPPROF_COUNTS") == "all" else 40
    source = random.Random(20)  # noqa: S311 - numbers to test with

    def processes() -> list[Run]:
        # Skewed, as processes are: most near the floor, some far above it.
        return many_tests([[round(MS * (1 + source.expovariate(12))) for _ in range(12)] for _ in range(5)])

    called: Counter[Verdict] = Counter()
    for _ in range(trials):
        rounds = (processes(), processes()), (processes(), processes())
        called.update(set(compare_times(*rounds[0], confirmation=rounds[1]).counts))
    # By chance, 1 in 100 unsure changes is confirmed; of sure ones, 1 in 100 of at most 10.
    assert called[Verdict.REGRESSED] + called[Verdict.IMPROVED] <= (8 if trials == 200 else 3)
    # two unsure rounds that agree: 1 in 20 of those that seemed slower twice
    assert called[Verdict.INCONCLUSIVE] <= trials // 8
