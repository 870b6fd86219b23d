"""Detectors that keep an A/B from judging meaningless times."""

from __future__ import annotations

from functools import partial
from typing import Final

from mutants.detector import Detector, Layer

_judges: Final = partial(Detector, layer=Layer.VERDICT)
_TIMES: Final = "pytest_opprof/compare/timing/judge.py"
_SAMPLES: Final = "pytest_opprof/compare/timing/samples.py"
_ROUNDS: Final = "pytest_opprof/compare/timing/verdicts.py"
_TESTS: Final = "tests/unit/compare/timing"

TIMES: Final = (
    _judges(
        name="more than one machine",
        tells="That the processes of an A/B ran on different hosts.",
        file=_TIMES,
        text="        everywhere = _other_host(",
        without="        everywhere = '' and _other_host(",
        test=f"{_TESTS}/test_judge.py::test_other_host_is_inconclusive",
    ),
    _judges(
        name="an environment that changed meanwhile",
        tells="That a side was measured with two interpreters or releases of a library.",
        file=_TIMES,
        text='        everywhere = everywhere or _mixed("base"',
        without='        everywhere = everywhere or "" and _mixed("base"',
        test=f"{_TESTS}/test_judge.py::test_environment_that_changed_on_one_side_is_inconclusive",
    ),
    _judges(
        name="libraries or threads that changed meanwhile",
        tells="That a test of a side was measured with other libraries, or other threads of torch.",
        file=_TIMES,
        text="            or changed.get(node_id)\n",
        without="",
        test=f"{_TESTS}/test_judge.py::test_setting_that_changed_on_one_side_is_inconclusive",
    ),
    _judges(
        name="a base that differs from itself",
        tells="That the machine cannot judge times now.",
        file=_TIMES,
        text="        everywhere = everywhere or _failed_control(self.control)\n",
        without="",
        test=f"{_TESTS}/test_judge.py::test_base_differing_from_itself_stops_all_verdicts",
    ),
    _judges(
        name="too few processes",
        tells="That chance alone may look like a change.",
        file=_TIMES,
        text="            or verdicts.too_few(sides, tests=len(timed), settings=settings)\n",
        without="",
        test=f"{_TESTS}/test_judge.py::test_too_few_processes_are_refused",
    ),
    _judges(
        name="a base that is too noisy",
        tells="That a test differs from itself too much to be judged.",
        file=_TIMES,
        text="            or verdicts.too_noisy(self.noise_ppm.get(node_id, 0), settings=settings)\n",
        without="",
        test=f"{_TESTS}/test_judge.py::test_noisy_base_is_inconclusive",
    ),
    _judges(
        name="other libraries",
        tells="That more than the code differs between the sides.",
        file=_TIMES,
        text="    return (f\"not only the code differs: {', '.join(words)}\",) if words else ()",
        without="    return ()",
        test=f"{_TESTS}/test_judge.py::test_other_libraries_are_reported_and_judged",
    ),
    _judges(
        name="numbers that a process lacks",
        tells="That a process has no numbers of a test.",
        file=_SAMPLES,
        text="            if not bad:\n                continue",
        without="            if bad or not bad:\n                continue",
        test=f"{_TESTS}/test_samples.py::test_one_bad_process_is_reported",
    ),
    _judges(
        name="other work",
        tells="That the sides did not take the same steps.",
        file=_SAMPLES,
        text="    if before == after and len(before) == 1:",
        without="    if True:",
        test=f"{_TESTS}/test_samples.py::test_one_bad_process_is_reported",
    ),
    _judges(
        name="a clock that stood still",
        tells="That a step took no time, or less.",
        file=_SAMPLES,
        text="if not each.totals[WALL_TIME.name].low > 0]",
        without="if not each.totals[WALL_TIME.name]]",
        test=f"{_TESTS}/test_samples.py::test_one_bad_process_is_reported",
    ),
    _judges(
        name="processes that others disturbed",
        tells="Of which processes the machine was slower than usual.",
        file=_TIMES,
        text="*samples.disturbances(evidence.tests, settings=settings)",
        without="*()",
        test=f"{_TESTS}/test_disturbed.py::test_processes_that_others_disturbed_are_left_out",
    ),
    _judges(
        name="a change that nobody confirmed",
        tells="That fresh processes have not said the same.",
        file=_ROUNDS,
        text="    if confirmation is None:\n        return unknown,",
        without="    if confirmation is None:\n        return Verdict.REGRESSED,",
        test=f"{_TESTS}/test_judge.py::test_flagged_test_is_inconclusive_until_confirmed",
    ),
    _judges(
        name="a confirmation in between",
        tells="That fresh processes neither confirm a change nor deny it.",
        file=_ROUNDS,
        text='return Verdict.INCONCLUSIVE, f", and not certain',
        without='return Verdict.PASS, f", and not certain',
        test=f"{_TESTS}/test_confirmation.py::test_unsure_confirmation_is_inconclusive",
    ),
    _judges(
        name="a confirmation that could not have seen it",
        tells="That fresh processes were noisier than the change.",
        file=_ROUNDS,
        text="    if noise_ppm >= first.distance_ppm:",
        without="    if False:",
        test=f"{_TESTS}/test_confirmation.py::test_confirmation_that_could_not_have_seen_it_is_inconclusive",
    ),
    _judges(
        name="two looks that are not sure",
        tells="That two rounds together neither show a change nor rule it out.",
        file=_ROUNDS,
        text='return Verdict.INCONCLUSIVE, f"; in {again}: not certain"',
        without='return Verdict.PASS, f"; in {again}: not certain"',
        test=f"{_TESTS}/test_confirmation.py::test_two_looks_that_are_unsure_together_are_inconclusive",
    ),
)
