"""Every argument of every public callable of the profiler shows: a result differs, or a warning says why not.

The arguments are read from the signatures, so that a new one without a proof here fails.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from argument_proofs import PROFILERS, PROOFS

from pytest_opprof import (
    BasicEvaluation,
    EventKey,
    _ExperimentalConfig,
    _init_for_cuda_graphs,
    _RecordFunctionFast,
    autograd,
    emit_itt,
    emit_nvtx,
    itt,
    map_recorded_events_to_aten_ops_with_stack_trace,
    profile,
    schedule,
    source_code_location,
    tensorboard_trace_handler,
)

METHODS = (
    "key_averages",
    "export_chrome_trace",
    "export_stacks",
    "toggle_collection_dynamic",
    "add_metadata",
    "add_metadata_json",
    "preset_metadata_json",
    "set_custom_trace_id_callback",
)
CALLABLES: dict[str, Callable[..., Any]] = {
    **PROFILERS,
    **{
        f"{name}.{method}": getattr(one, method)
        for name, one in PROFILERS.items()
        for method in METHODS
        if hasattr(one, method)
    },
    "autograd.profile.table": autograd.profile.table,
    "BasicEvaluation": BasicEvaluation,
    "BasicEvaluation.get_optimizable_events": BasicEvaluation.get_optimizable_events,
    "BasicEvaluation.rank_events": BasicEvaluation.rank_events,
    "EventKey.intervals_overlap": EventKey.intervals_overlap,
    "_ExperimentalConfig": _ExperimentalConfig,
    "_RecordFunctionFast": _RecordFunctionFast,
    "_init_for_cuda_graphs": _init_for_cuda_graphs,
    "emit_itt": emit_itt,
    "emit_nvtx": emit_nvtx,
    "map_recorded_events_to_aten_ops_with_stack_trace": map_recorded_events_to_aten_ops_with_stack_trace,
    "schedule": schedule,
    "source_code_location": source_code_location,
    "tensorboard_trace_handler": tensorboard_trace_handler,
    **{f"itt.{name}": getattr(itt, name) for name in itt.__all__},
}
# Of C, and without a signature.
WRITTEN_OUT = {"record_function": ("name", "args")}

# Where another test shows it: that test must be there and must give the argument.
SHOWN = {
    "_init_for_cuda_graphs.window": "test_profile.py::test_window_for_cuda_graphs_is_opened_when_asked_for",
    "map_recorded_events_to_aten_ops_with_stack_trace.traced_data": (
        "../unit/analysis/test_fx_markers.py::test_op_has_the_line_of_its_node"
    ),
    "map_recorded_events_to_aten_ops_with_stack_trace.registry": (
        "../unit/analysis/test_fx_markers.py::test_unknown_graphs_and_bare_nodes_have_no_lines"
    ),
    "BasicEvaluation.prof": "../unit/analysis/test_evaluation.py::test_published_depths",
    "BasicEvaluation.compat": "../unit/analysis/test_evaluation.py::test_names_that_are_methods_are_read",
    "BasicEvaluation.get_optimizable_events.length": (
        "../unit/analysis/test_evaluation.py::test_published_optimizable_events"
    ),
    "BasicEvaluation.get_optimizable_events.print_enable": (
        "../unit/analysis/test_evaluation.py::test_optimizable_events_are_printed_as_torch_prints_them"
    ),
    "BasicEvaluation.rank_events.length": (
        "../unit/analysis/test_evaluation.py::test_events_that_are_alike_have_a_ranking"
    ),
    "EventKey.intervals_overlap.intervals": "../unit/analysis/test_evaluation.py::test_published_overlap",
    "EventKey.intervals_overlap.compat": "../unit/analysis/test_evaluation.py::test_overlaps_are_exact",
    "source_code_location.event": "../unit/analysis/test_evaluation.py::test_location_without_python_is_said",
    "emit_itt.enabled": "test_emit.py::test_context_managers_are_not_reentrant",
    "emit_itt.record_shapes": "test_emit.py::test_itt_shows_sizes_when_asked",
    "emit_itt.compat": "../oracle/test_emit_oracle.py::test_strings_are_torchs",
    "emit_nvtx.enabled": "test_emit.py::test_context_managers_are_not_reentrant",
    "emit_nvtx.record_shapes": "test_emit.py::test_nvtx_says_what_the_documentation_promises",
    "emit_nvtx.compat": "test_emit.py::test_nvtx_numbers_forward_and_backward",
    "itt.mark.msg": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "itt.range_push.msg": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "itt.range.msg": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "itt.range.args": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "itt.range.kwargs": "test_emit.py::test_itt_module_pushes_pops_and_marks",
    "_RecordFunctionFast.name": "../unit/capture/test_record_function_fast.py::test_name_alone",
    "_RecordFunctionFast.inputs": "../unit/capture/test_record_function_fast.py::test_inputs_are_kept",
    "_RecordFunctionFast.kwargs": "../unit/capture/test_record_function_fast.py::test_named_values_are_kept",
    "autograd.profile.use_cuda": "test_autograd_profile.py::test_use_cuda_is_deprecated",
    "autograd.profile.use_device": "test_autograd_profile.py::test_devices_that_are_not_there_are_named",
    "autograd.profile.use_kineto": "test_autograd_profile.py::test_something_must_be_looked_at",
    "profile.sampling": "test_sampling.py::test_the_share_that_was_asked_for_is_recorded",
    "_KinetoProfile.sampling": "test_sampling.py::test_the_share_that_was_asked_for_is_recorded",
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
    "_ExperimentalConfig.verbose": "test_autograd_profile.py::test_what_is_always_so_may_be_asked_for",
    "_ExperimentalConfig.profile_all_threads": (
        "test_autograd_profile.py::test_what_is_always_so_may_be_asked_for"
    ),
    "_ExperimentalConfig.record_python_gc_info": (
        "test_autograd_profile.py::test_collections_are_ranges_when_asked_for"
    ),
    "_ExperimentalConfig.capture_overload_names": "test_overloads.py::test_overloads_are_recorded_when_asked_for",
    "_ExperimentalConfig.performance_events": "test_counters.py::test_ranges_have_what_was_asked_for",
    "_ExperimentalConfig.trace_only": "test_autograd_profile.py::test_trace_only_refuses_events",
}


def arguments() -> list[str]:
    found = [
        f"{name}.{argument}"
        for name, one in CALLABLES.items()
        for argument in inspect.signature(one).parameters
        if argument != "self"
    ]
    return found + [f"{name}.{argument}" for name, names in WRITTEN_OUT.items() for argument in names]


@pytest.mark.parametrize("key", arguments())
def test_argument_shows(key: str, tmp_path: Path) -> None:
    if key in SHOWN:
        check_shown(SHOWN[key], key.rpartition(".")[2])
        return
    name, _, argument = key.rpartition(".")
    owner = next((one for one in PROFILERS if name == one or name.startswith(f"{one}.")), "profile")
    method = name.removeprefix(owner).removeprefix(".")
    proof = PROOFS.get(key) or PROOFS.get(f"{method}.{argument}" if method else argument)
    assert proof is not None, f"nothing shows what {key} does: write a proof here"
    proof(PROFILERS[owner], tmp_path)


def check_shown(place: str, argument: str) -> None:
    path, _, test = place.partition("::")
    text = (Path(__file__).parent / path).read_text(encoding="utf-8")
    assert f"def {test}(" in text, f"{place} is gone"
    assert test, argument


def test_proofs_are_of_arguments_that_there_are() -> None:
    names = {key.rpartition(".")[2] for key in arguments()}
    assert {key.rpartition(".")[2] for key in {*PROOFS, *SHOWN}} <= names
    assert set(SHOWN) <= set(arguments())


def test_one_proof_fails_when_its_argument_does_nothing(tmp_path: Path) -> None:
    """The proofs prove: a profiler that ignores its arguments is found out."""

    def deaf(**_options: object) -> profile:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return profile()

    ignored: Iterable[str] = (
        "record_shapes",
        "with_flops",
        "with_stack",
        "acc_events",
        "experimental_config",
    )
    for argument in ignored:
        with pytest.raises((AssertionError, StopIteration)):
            PROOFS[argument](deaf, tmp_path)
