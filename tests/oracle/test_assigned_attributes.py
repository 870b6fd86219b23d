"""Code written for torch.profiler that sets attributes and replaces methods: both profilers must heed it."""

import copy
import pickle
from typing import Any

import pytest
from support.programs.profiled_steps import ToldObserver

import pytest_opprof

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("torch")
BOTH = pytest.mark.parametrize("api", [torch.profiler, pytest_opprof], ids=["torch", "ours"])


def profiler(api: Any, **arguments: Any) -> Any:
    return api.profile(activities=[torch.profiler.ProfilerActivity.CPU], **arguments)


def names(prof: Any) -> set[str]:
    return {event.name for event in prof.events()}


@BOTH
def test_a_trainer_counts_the_steps_itself(api: Any) -> None:
    """As PyTorch Lightning's profiler does, which calls step() several times in a batch."""
    action = api.ProfilerAction
    planned = {6: action.WARMUP, 7: action.RECORD_AND_SAVE}
    ready: list[int] = []
    prof = profiler(
        api,
        schedule=lambda step: planned.get(step, action.NONE),
        on_trace_ready=lambda prof: ready.append(prof.step_num),
    )
    with prof:
        for number in (5, 6, 7):
            prof.step_num = number
            torch.ones(number)
            prof.step()
        assert (prof.step_num, prof.current_action) == (8, action.NONE)
    assert ready == [8]
    assert {"ProfilerStep*", "aten::ones"} <= names(prof)


@BOTH
def test_a_schedule_may_be_replaced(api: Any) -> None:
    prof = profiler(api, schedule=lambda _step: api.ProfilerAction.NONE)
    with prof:
        prof.schedule = torch.profiler.profiler._default_schedule_fn
        prof.step()
        torch.ones(2)
    assert "aten::ones" in names(prof)


@BOTH
def test_the_first_action_and_the_names_of_steps_may_be_set(api: Any) -> None:
    prof = profiler(api, schedule=lambda _step: api.ProfilerAction.NONE)
    prof.current_action = api.ProfilerAction.RECORD_AND_SAVE
    prof.step_num = 3
    prof.record_steps = False
    with prof:
        torch.ones(2)
        assert prof.step_num == 3
    assert "aten::ones" in names(prof)
    assert not any("ProfilerStep" in name for name in names(prof))


@BOTH
def test_what_is_recorded_may_be_set_before_the_start(api: Any) -> None:
    observer = ToldObserver()
    prof = profiler(api)
    prof.record_shapes = prof.with_stack = prof.profile_memory = True
    prof.experimental_config = torch.profiler._ExperimentalConfig(verbose=True)  # torch shows stacks only so
    prof.execution_trace_observer = observer
    prof.custom_trace_id_callback = lambda: "a name"
    with prof:
        torch.ones(2, 3).add(1)
    added = next(event for event in prof.events() if event.name == "aten::add")
    assert added.input_shapes[0] == [2, 3]
    assert added.stack
    assert any(event.cpu_memory_usage > 0 for event in prof.events())
    assert observer.told == ["start", "stop", "cleanup"]
    assert prof.get_trace_id() == "a name"


@BOTH
def test_a_subclass_may_replace_the_moves(api: Any) -> None:
    told: list[str] = []

    class Telling(api.profile):  # type: ignore[misc]  # one of two classes
        def prepare_trace(self) -> None:
            told.append("prepare")
            super().prepare_trace()

        def start_trace(self) -> None:
            told.append("start")
            super().start_trace()

        def stop_trace(self) -> None:
            super().stop_trace()
            told.append("stop")

    prof = Telling(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=api.schedule(wait=0, warmup=1, active=1, repeat=1),
        on_trace_ready=lambda _prof: told.append("ready"),
    )
    with prof:
        prof.step()
        torch.ones(2)
        prof.step()
    assert told == ["prepare", "start", "stop", "ready"]
    assert "aten::ones" in names(prof)


@pytest.mark.parametrize(
    ("api", "module"),
    [(torch.profiler, torch.autograd.profiler), (pytest_opprof, pytest_opprof.autograd)],
    ids=["torch", "ours"],
)
def test_hooks_may_be_replaced(api: Any, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, bool]] = []
    starts, stops = module._run_on_profiler_start, module._run_on_profiler_stop

    def on_start() -> None:
        starts()
        heard.append(("start", module._is_profiler_enabled))

    def on_stop() -> None:
        stops()
        heard.append(("stop", module._is_profiler_enabled))

    monkeypatch.setattr(module, "_run_on_profiler_start", on_start)
    monkeypatch.setattr(module, "_run_on_profiler_stop", on_stop)
    with profiler(api):
        assert heard == [("start", True)]
    assert heard == [("start", True), ("stop", False)]
    module._is_profiler_enabled = True
    assert module._is_profiler_enabled
    module._set_is_profiler_enabled(False)
    assert not module._is_profiler_enabled


@BOTH
def test_a_range_may_be_copied_and_renamed(api: Any) -> None:
    scope = api.record_function("before", "with text")
    deep, pickled = copy.deepcopy(torch.nn.ModuleDict()), pickle.loads(pickle.dumps(scope))  # noqa: S301
    deep.scope = scope
    deep = copy.deepcopy(deep)
    scope.name, scope.args = "after", None
    with profiler(api) as prof, scope, deep.scope, pickled:
        torch.ones(2)
    assert (scope.name, scope.args) == ("after", None)
    assert (deep.scope.name, deep.scope.args, pickled.name) == ("before", "with text", "before")
    assert {"before", "after"} <= names(prof)


def test_torchs_experimental_config_is_read() -> None:
    config = torch.profiler._ExperimentalConfig(
        capture_overload_names=True, enable_cuda_sync_events=True, performance_events=["task-clock"]
    )
    with pytest.warns(UserWarning, match="experimental_config: enable_cuda_sync_events: accepted, but"):
        prof = profiler(pytest_opprof, experimental_config=config)
    read = prof.experimental_config
    assert (read.capture_overload_names, list(read.performance_events)) == (True, ["task-clock"])
    later = profiler(pytest_opprof)
    later.experimental_config = torch.profiler._ExperimentalConfig(capture_overload_names=True)
    with later:
        torch.ones(2).add(1)
    assert ("aten::add", "Tensor") in {(event.name, event.overload_name) for event in later.events()}


@BOTH
def test_an_event_table_shows_what_its_events_have(api: Any) -> None:
    """Two ops with few FLOPs each: the unit must suit one of them, not their sum."""
    config = torch.profiler._ExperimentalConfig(capture_overload_names=True)
    ones = torch.ones(512)
    with profiler(api, with_flops=True, experimental_config=config) as prof:
        for _ in range(1000):
            ones + ones
    table = prof.events().table(row_limit=3)
    assert "Total FLOPs" in table
    assert "Overload Name" in table
    assert "512.000" in table
