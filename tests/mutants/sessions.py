"""Detectors in sessions and commands: of measurements, baselines, dead processes."""

from __future__ import annotations

from functools import partial
from typing import Final

from mutants.detector import Detector, Layer

_says: Final = partial(Detector, layer=Layer.SESSION)
_STEPPING: Final = "pytest_opprof/plugin/stepping.py"
_CERTIFY: Final = "pytest_opprof/plugin/certify.py"
_CLOSING: Final = "pytest_opprof/plugin/closing.py"
_RESOLVE: Final = "pytest_opprof/baselines/resolve.py"
_GIT: Final = "tests/integration/test_resolve_with_git.py"
_TOLD: Final = "pytest_opprof/recovery/deaths.py"
_DEATHS: Final = "tests/unit/recovery/test_deaths.py"

SESSIONS: Final = (
    _says(
        name="a later call that fails",
        tells="That a test cannot be called as often as its schedule says.",
        file=_STEPPING,
        text="        self.problem, self.is_repeatable = self._unrepeatable(error), False",
        without="        self.problem = None",
        test="tests/unit/plugin/test_stepping.py::test_a_later_failure_is_kept_for_the_measurement",
    ),
    _says(
        name="fewer calls than planned",
        tells="That a test was not called as often as its schedule says.",
        file=_STEPPING,
        text="            self.problem = self._what_is_missing()",
        without="            self.problem = None",
        test="tests/unit/plugin/test_stepping.py::test_fewer_calls_than_planned_are_an_error",
    ),
    _says(
        name="torch that comes late",
        tells="That a step was not seen whole, as torch was first imported in it.",
        file=_STEPPING,
        text='"torch" in sys.modules and not self._had_torch and Collector',
        without="False and not self._had_torch and Collector",
        test="tests/e2e/test_hostile.py::test_torch_first_imported_in_a_step_is_inconclusive",
    ),
    _says(
        name="a fault of ours",
        tells="That the profiler itself failed.",
        file=_STEPPING,
        text="        self.problem = fault(error)",
        without="        fault(error)",
        test="tests/unit/plugin/test_stepping.py"
        "::test_a_schedule_that_raises_is_a_problem_of_the_measurement",
    ),
    _says(
        name="a second measurement before a failure",
        tells="Whether what would fail a test is the same when it is measured once more.",
        file=_STEPPING,
        text="        return self._fails(self)",
        without="        return False",
        test="tests/unit/plugin/test_stepping.py::test_a_failure_worth_it_is_measured_once_more",
    ),
    _says(
        name="torch that cannot be observed",
        tells="That torch was there, and its ops were not recorded.",
        file="pytest_opprof/plugin/measurement.py",
        text="    if no_ops and imported_torch() is not None and stepping.sources & OF_TORCH:",
        without="    if False:",
        test="tests/e2e/test_torch_ops.py::test_ops_that_cannot_be_observed_leave_a_test_inconclusive",
    ),
    _says(
        name="a timed call that fails",
        tells="That a test cannot be timed as often as was asked for.",
        file="pytest_opprof/plugin/timing.py",
        text='        self.reason = f"cannot be called so often',
        without='        _ = f"cannot be called so often',
        test="tests/unit/plugin/test_timing.py::test_a_timed_call_that_raises_takes_the_times_with_it",
    ),
    _says(
        name="steps that others disturbed",
        tells="How many timed steps ran while the machine was slower than usual.",
        file="pytest_opprof/plugin/timing.py",
        text="return sum(step.pace is Pace.SLOW for",
        without="return 0 * sum(step.pace is Pace.SLOW for",
        test="tests/unit/plugin/test_timing.py"
        "::test_a_busy_machine_times_until_enough_steps_were_undisturbed",
    ),
    _says(
        name="one process alone",
        tells="That nobody confirmed what a baseline has.",
        file=_CERTIFY,
        text="        return Certified(tests=run.tests, note=_ALONE)",
        without="        return Certified(tests=run.tests)",
        test="tests/e2e/test_instability.py::test_one_process_alone_certifies_nothing_and_says_so",
    ),
    _says(
        name="a fresh process that fails",
        tells="That a fresh process could not confirm a baseline, and why.",
        file=_CERTIFY,
        text='            return Certified(tests=seen, note=f"not certified in {processes} processes: {error}")',
        without="            return Certified(tests=seen, note=None if error else None)",
        test="tests/integration/test_certify.py::test_failed_second_process_is_reported_and_run_saved",
    ),
    _says(
        name="a test that a fresh process cannot measure",
        tells="Which tests of a baseline nobody confirmed.",
        file=_CERTIFY,
        text='    return Certified(tests=seen, note=f"{why}: {listed(lost, most=1)}" if lost else None)',
        without="    return Certified(tests=seen, note=None if lost else None)",
        test="tests/e2e/test_verdicts.py::test_failure_in_the_second_process_prevents_certification",
    ),
    _says(
        name="a failure that belongs to no test",
        tells="That a test of the baseline is missing, or that there is no baseline: the session fails.",
        file=_CLOSING,
        text="    session.failures += failures_of(session, session.comparison)\n",
        without="",
        test="tests/e2e/test_baselines.py::test_no_baseline_is_one_sentence_and_a_failure",
    ),
    _says(
        name="a failed report that is lost",
        tells="That another plugin kept pytest from counting a failed gate: the session fails.",
        file="pytest_opprof/plugin/failing.py",
        text="        if test.verdict and test.node_id not in failed",
        without="        if test.verdict and test.node_id in failed and not failed",
        test="tests/e2e/test_failing_sessions.py::test_no_plugin_hides_a_regression",
    ),
    _says(
        name="a session that was cut short",
        tells="That nothing was saved, as not all tests ran.",
        file=_CLOSING,
        text='        session.notes["nothing was saved: the session was cut short"] = None',
        without="        pass",
        test="tests/e2e/test_hostile.py::test_a_test_may_end_the_session",
    ),
    _says(
        name="a document that cannot be written",
        tells="That a run's document is not there: the session fails.",
        file=_CLOSING,
        text="        write_run(session.options.json, run)\n    except OpprofError as error:\n"
        "        session.failures.append(str(error))",
        without="        write_run(session.options.json, run)\n    except OpprofError as error:\n        del error",
        test="tests/e2e/test_faults.py::test_other_outputs_are_written_despite_a_failure",
    ),
    _says(
        name="a report that cannot be written",
        tells="That a report is not there: the session fails.",
        file=_CLOSING,
        text="            text = write_report(wanted, comparison, root=session.config.rootpath)\n        except OpprofError as error:\n"
        "            session.failures.append(str(error))",
        without="            text = write_report(wanted, comparison, root=session.config.rootpath)\n        except OpprofError as error:\n"
        "            del error",
        test="tests/e2e/test_reports.py::test_unwritable_report_is_reported",
    ),
    _says(
        name="a baseline that cannot be written",
        tells="That nothing was saved: the session fails.",
        file=_CLOSING,
        text="    except OpprofError as error:\n        session.failures.append(str(error))\n        return False",
        without="    except OpprofError as error:\n        del error\n        return False",
        test="tests/e2e/test_faults.py::test_a_store_that_cannot_be_written_is_one_sentence",
    ),
    _says(
        name="a result that is lost",
        tells="That a worker could not hand over what it measured: the session fails.",
        file="pytest_opprof/plugin/controller.py",
        text="        self._lost += output.get(LOST, ())",
        without="        self._lost += ()",
        test="tests/e2e/test_xdist.py::test_lost_result_fails_the_session",
    ),
    _says(
        name="a result that its worker wrote in vain",
        tells="That a worker wrote a test's result, and nobody found it: the session fails.",
        file=_CLOSING,
        text="    if lost:\n        session.failures",
        without="    if False:\n        session.failures",
        test="tests/e2e/test_xdist.py::test_a_fixture_that_replaces_files_costs_no_result",
    ),
    _says(
        name="CUDA that is refused",
        tells="That CUDA could not be recorded, which only its first use found out.",
        file="pytest_opprof/plugin/session.py",
        text="        self.notes |= dict.fromkeys(late - self.said)",
        without="        dict.fromkeys(late - self.said)",
        test="tests/e2e/test_cuda.py::test_cuda_refused_at_first_use_is_reported",
    ),
    _says(
        name="a trace that is not kept",
        tells="That there was no room for a test's trace.",
        file="pytest_opprof/baselines/traces.py",
        text="        return (_left_out(left_out, budget=self.budget),) if left_out else ()",
        without="        return ()",
        test="tests/e2e/test_kept_traces.py::test_oversized_trace_is_left_out_and_reported",
    ),
    _says(
        name="traces that are not even written",
        tells="That the traces of the first tests took all the room.",
        file="pytest_opprof/plugin/session.py",
        text="        if not_staged:",
        without="        if False:",
        test="tests/e2e/test_kept_traces.py::test_traces_past_the_budget_are_reported_not_written",
    ),
    _says(
        name="no session file",
        tells="That nothing could be read, were the process to die.",
        file="pytest_opprof/plugin/opening.py",
        text="[*problems, *late, *filter(None, [no_recovery])]",
        without="[*problems, *late, *filter(None, [no_recovery and None])]",
        test="tests/e2e/test_deaths.py::test_without_a_session_file_the_header_says_so",
    ),
    _says(
        name="a baseline with uncommitted changes",
        tells="That a baseline is of no commit.",
        file=_RESOLVE,
        text="    if candidate.entry.is_dirty:",
        without="    if False:",
        test=f"{_GIT}::test_dirty_runs_count_and_are_reported",
    ),
    _says(
        name="a baseline that is not an ancestor",
        tells="That the latest run was taken, and that its commit is none this work grew from.",
        file=_RESOLVE,
        text="            yield Candidate(entry=entry, relation=LATEST, note=note)\n\n\n",
        without="            yield Candidate(entry=entry, relation=LATEST)\n\n\n",
        test=f"{_GIT}::test_latest_is_taken_with_a_note",
    ),
    _says(
        name="history that is not at hand",
        tells="That a shallow clone may have hidden a nearer baseline.",
        file="pytest_opprof/baselines/ancestry.py",
        text="    if not git.is_shallow:",
        without="    if True:",
        test=f"{_GIT}::test_shallow_clone_says_so",
    ),
    _says(
        name="a baseline from the future",
        tells="That a clock was set back.",
        file=_RESOLVE,
        text="    if age < -CLOCKS_APART:",
        without="    if False:",
        test=f"{_GIT}::test_run_from_the_future_is_reported",
    ),
    _says(
        name="a baseline of another environment",
        tells="That the nearest baseline was measured elsewhere, and another one was taken.",
        file=_RESOLVE,
        text='taken, notes=(*taken.notes, f"{what}: using',
        without='taken, notes=() if what else (f"{what}: using',
        test=f"{_GIT}::test_an_ancestor_from_an_environment_like_this_one_is_preferred",
    ),
    _says(
        name="a process that died",
        tells="Which test of an earlier session did not end, and what ran last.",
        file="pytest_opprof/plugin/flight.py",
        text="            lines += told(death, trace=trace and trace.relative_to(root))",
        without="            lines += ()",
        test="tests/e2e/test_deaths.py::test_the_next_session_says_what_ran_last",
    ),
    _says(
        name="a recovered recording that was cut off",
        tells="That a dead process's recording is not all that it did.",
        file=_TOLD,
        text="    if stats.dropped:",
        without="    if False:",
        test=f"{_DEATHS}::test_forgotten_events_are_counted",
    ),
    _says(
        name="a recording that cannot be recovered",
        tells="That what a dead process left cannot be read.",
        file="pytest_opprof/recovery/deaths.py",
        text='problem=f"the recording cannot be read: {error}")',
        without='problem="" if error else "")',
        test=f"{_DEATHS}::test_damaged_recording_is_reported",
    ),
    _says(
        name="threads of a dead process",
        tells="How many of its threads the report leaves out.",
        file=_TOLD,
        text="    if more > 0:",
        without="    if False:",
        test=f"{_DEATHS}::test_many_threads_and_deep_stacks_are_counted",
    ),
    _says(
        name="processes of an A/B that died",
        tells="How many processes of each side died and were run again.",
        file="pytest_opprof/experiment/ab.py",
        text="        died = Counter(death.side for death in self.kept.deaths())\n        if died:",
        without="        died = Counter(death.side for death in self.kept.deaths())\n        if False:",
        test="tests/e2e/ab/test_resuming.py::test_interrupted_measurements_are_kept_and_resumed",
    ),
)
