"""Every argument of every public callable of the profiler shows: a result differs, or a warning says why not.

The arguments are read from the signatures, so that a new one without a proof here fails.
"""

import functools
import inspect
import warnings
from pathlib import Path
from typing import Any

import pytest
from support.kineto.event_arguments import COVERED
from support.proofs import method_proofs  # noqa: F401  # it registers its proofs
from support.proofs.argument_proofs import PROFILERS, PROOFS, Make, Proof
from support.proofs.file_proofs import LastCycle, Reread
from support.proofs.public_calls import public_arguments, public_calls

from pytest_opprof import profile

CALLS = public_calls()
OWNERS: dict[str, Make] = {**PROFILERS, "Cycle": LastCycle, "TraceFile": Reread}
# Arguments whose value a test gives by position.
FIRST = {"prof", "event", "intervals", "msg", "args", "kwargs", "name", "inputs", "length", "traced_data"}

# Arguments that another test covers: that test must exist and give the argument.
SHOWN = {
    "_init_for_cuda_graphs.window": "test_profile.py::test_window_for_cuda_graphs_is_opened_when_asked_for",
    "map_recorded_events_to_aten_ops_with_stack_trace.traced_data": (
        "../unit/analysis/test_fx_markers.py::test_op_has_the_line_of_its_node"
    ),
    "map_recorded_events_to_aten_ops_with_stack_trace.registry": (
        "../unit/analysis/test_fx_markers.py::test_unknown_graphs_and_bare_nodes_have_no_lines"
    ),
    "BasicEvaluation.prof": "../unit/analysis/test_evaluation.py::test_published_queue_depths_are_reproduced",
    "BasicEvaluation.get_optimizable_events.length": (
        "../unit/analysis/test_evaluation.py::test_published_optimizable_events_are_reproduced"
    ),
    "BasicEvaluation.get_optimizable_events.print_enable": (
        "../unit/analysis/test_evaluation.py::test_optimizable_events_are_printed_as_torch_prints_them"
    ),
    "BasicEvaluation.rank_events.length": (
        "../unit/analysis/test_evaluation.py::test_events_that_are_alike_have_a_ranking"
    ),
    "EventKey.intervals_overlap.intervals": "../unit/analysis/test_evaluation.py::test_published_overlap_is_reproduced",
    "source_code_location.event": "../unit/analysis/test_evaluation.py::test_missing_python_location_is_reported",
    "emit_itt.enabled": "test_emit.py::test_context_managers_are_not_reentrant",
    "emit_itt.record_shapes": "test_emit.py::test_itt_shows_sizes_when_asked",
    "emit_itt.compat": "../oracle/test_emit_oracle.py::test_strings_match_torchs",
    "emit_nvtx.enabled": "test_emit.py::test_context_managers_are_not_reentrant",
    "emit_nvtx.record_shapes": "test_emit.py::test_nvtx_names_match_the_documentation",
    "emit_nvtx.compat": "test_emit.py::test_nvtx_numbers_forward_and_backward",
    "itt.mark.msg": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "itt.range_push.msg": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "itt.range.msg": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "itt.range.args": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "itt.range.kwargs": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "_RecordFunctionFast.name": "../unit/capture/test_record_function_fast.py::test_name_alone_is_recorded",
    "_RecordFunctionFast.input_values": "../unit/capture/test_record_function_fast.py::test_inputs_are_kept",
    "_RecordFunctionFast.keyword_values": "../unit/capture/test_record_function_fast.py::test_named_values_are_kept",
    "autograd.profile.use_cuda": "test_autograd_profile.py::test_use_cuda_is_deprecated",
    "autograd.profile.use_device": "test_autograd_profile.py::test_unavailable_devices_are_named",
    "autograd.profile.use_kineto": "test_autograd_profile.py::test_at_least_one_activity_is_required",
    **{
        f"Opprof.benchmark.{argument}": "../e2e/test_benchmarks.py::test_timed_function_is_the_stepped_one"
        for argument in ("benchmark", "function", "args", "kwargs")
    },
    "Opprof.key_averages.group_by_input_shape": (
        "../e2e/test_fixture.py::test_counts_and_averages_are_there_while_the_test_runs"
    ),
    "profile.sampling": "test_sampling.py::test_the_share_that_was_asked_for_is_recorded",
    "_KinetoProfile.sampling": "test_sampling.py::test_the_share_that_was_asked_for_is_recorded",
    **{
        f"{name}.table.{argument}": "../oracle/test_api_oracle.py::test_the_inner_profile_has_torchs_results"
        for name in ("profile", "_KinetoProfile")
        for argument in ("args", "kwargs")
    },
    "autograd.profile.enabled": "test_autograd_profile.py::test_disabled_profile_has_empty_results",
    **{
        f"{name}.toggle_collection_dynamic.{argument}": (
            "test_autograd_profile.py::test_collection_is_switched_off_and_on"
        )
        for name, argument in (
            ("profile", "enable"),
            ("profile", "activities"),
            ("_KinetoProfile", "enable"),
            ("_KinetoProfile", "activities"),
        )
    },
    **{
        f"_ExperimentalConfig.{setting}": "test_autograd_profile.py::test_settings_of_kineto_are_named_in_a_warning"
        for setting in (
            "profiler_metrics",
            "profiler_measure_per_kernel",
            "enable_cuda_sync_events",
            "adjust_profiler_step",
            "disable_external_correlation",
            "expose_kineto_event_metadata",
            "custom_profiler_config",
            "adjust_timestamps",
        )
    },
    "_ExperimentalConfig.verbose": "test_autograd_profile.py::test_settings_that_always_hold_are_accepted",
    "_ExperimentalConfig.profile_all_threads": (
        "test_autograd_profile.py::test_settings_that_always_hold_are_accepted"
    ),
    "_ExperimentalConfig.record_python_gc_info": (
        "test_autograd_profile.py::test_garbage_collections_are_ranges_on_request"
    ),
    "_ExperimentalConfig.capture_overload_names": "test_overloads.py::test_overloads_are_recorded_when_asked_for",
    "_ExperimentalConfig.performance_events": "test_counters.py::test_ranges_have_the_requested_counters",
    "_ExperimentalConfig.trace_only": "test_autograd_profile.py::test_trace_only_refuses_events",
}


def is_shown_with_the_events(name: str, argument: str) -> bool:
    return any(call is CALLS[name] and argument in known for call, known in COVERED)


def proof_of(key: str) -> tuple[Proof | None, Make]:
    """The proof of an argument, and the profiler to run it with."""
    name, _, argument = key.rpartition(".")
    owner = next((one for one in OWNERS if name == one or name.startswith(f"{one}.")), None)
    if owner is None:
        return PROOFS.get(key), profile
    method = name.removeprefix(owner).removeprefix(".")
    return PROOFS.get(key) or PROOFS.get(f"{method}.{argument}" if method else argument), OWNERS[owner]


@pytest.mark.parametrize("key", public_arguments())
def test_every_argument_has_an_effect(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, argument = key.rpartition(".")
    if key in SHOWN:
        check_shown(SHOWN[key], argument)
        return
    if is_shown_with_the_events(name, argument):
        return
    monkeypatch.setattr(Reread, "folder", tmp_path, raising=False)
    proof, owner = proof_of(key)
    assert proof is not None, f"nothing shows what {key} does: write a proof here"
    proof(owner, tmp_path)


def check_shown(place: str, argument: str) -> None:
    """The test exists, and its file names the argument, except for a positional one."""
    path, _, test = place.partition("::")
    text = (Path(__file__).parent / path).read_text(encoding="utf-8")
    assert f"def {test}(" in text, f"{place} is gone"
    assert argument in FIRST or argument in text, f"{path} has no {argument}"


def test_proofs_name_existing_arguments() -> None:
    arguments = public_arguments()
    names = {key.rpartition(".")[2] for key in arguments}
    assert {key.rpartition(".")[2] for key in {*PROOFS, *SHOWN}} <= names
    assert set(SHOWN) <= set(arguments)


def test_no_public_call_is_overlooked() -> None:
    """The search finds some calls of each kind."""
    known = {
        "profile",
        "profile.step",
        "load_nsys",
        "EventList.to_pandas",
        "itt.mark",
        "autograd.profile.table",
    }
    assert known <= CALLS.keys()
    assert {f"{name}.key_averages" for name in (*OWNERS, "EventList")} <= CALLS.keys()


# ---- proofs of the proofs ----


def optional_arguments() -> list[tuple[str, str, str]]:
    """Optional arguments of the profilers and their methods that have their own proof here."""
    found = []
    for key in public_arguments():
        name, _, argument = key.rpartition(".")
        owner = next((one for one in PROFILERS if name == one or name.startswith(f"{one}.")), None)
        optional = inspect.signature(CALLS[name]).parameters[argument].default if owner else None
        if owner and optional is not inspect.Parameter.empty and key not in SHOWN:
            found.append((owner, name.removeprefix(owner).removeprefix(".") or "__init__", argument))
    return found


def deaf_to(owner: Any, method: str, argument: str) -> Any:
    """The same profiler, but the method ignores this argument."""
    original = getattr(owner, method)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def deaf(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        bound.arguments.pop(argument, None)
        return original(*bound.args, **bound.kwargs)

    return type("Deaf", (owner,), {method: deaf})


FOUND_OUT = (AssertionError, LookupError, StopIteration, TypeError, pytest.fail.Exception)


@pytest.mark.parametrize(("owner", "method", "argument"), optional_arguments(), ids=str)
def test_proof_fails_if_the_argument_is_ignored(
    owner: str, method: str, argument: str, tmp_path: Path
) -> None:
    key = f"{owner}.{argument}" if method == "__init__" else f"{owner}.{method}.{argument}"
    proof, profiler = proof_of(key)
    assert proof is not None
    with (
        warnings.catch_warnings(),
        pytest.raises(FOUND_OUT),
    ):
        proof(deaf_to(profiler, method, argument), tmp_path)
