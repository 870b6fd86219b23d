"""The cycles of a profile's schedule: the steps that each records, and which cycles are kept."""

import pytest
from support.programs.profiled_steps import names, plan, run_steps, work

from pytest_opprof import profile, schedule
from pytest_opprof.errors import UsageError


def test_active_steps_are_recorded_and_no_others() -> None:
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
        run_steps(prof, 6)
    assert names(prof) == ["ProfilerStep#2", "outer", "inner 2", "ProfilerStep#3", "outer", "inner 3"]
    assert [step.number for step in prof.cycles[0].recording.steps] == [2, 3]
    assert {event.step for event in prof.events()} == {2, 3}
    assert {row.key: row.count for row in prof.key_averages()} == {
        "ProfilerStep*": 2,
        "outer": 2,
        "inner 2": 1,
        "inner 3": 1,
    }


def test_every_cycle_is_delivered_and_kept() -> None:
    delivered: list[tuple[int, list[str]]] = []
    with profile(
        schedule=schedule(wait=0, warmup=1, active=1, repeat=2),
        on_trace_ready=lambda prof: delivered.append((prof.step_num, names(prof))),
    ) as prof:
        run_steps(prof, 5)
    assert delivered == [
        (2, ["ProfilerStep#1", "outer", "inner 1"]),
        (4, ["ProfilerStep#3", "outer", "inner 3"]),
    ]
    assert [len(cycle.events()) for cycle in prof.cycles] == [3, 3]
    assert prof.cycles[0].trace_id != prof.cycles[1].trace_id
    assert [row.count for row in prof.cycles[0].key_averages()] == [1, 1, 1]


@pytest.mark.parametrize(
    ("letters", "recorded"),
    [
        pytest.param("RWRS", [["inner 0"], ["inner 2", "inner 3"]], id="record-warmup"),
        pytest.param("RNRS", [["inner 0"], ["inner 2", "inner 3"]], id="record-none"),
    ],
)
def test_transitions_torch_gets_wrong_lose_nothing(letters: str, recorded: list[list[str]]) -> None:
    prof = profile(schedule=plan(letters + "N"))
    with pytest.warns(UserWarning, match="Incorrect schedule: RECORD followed by"), prof:
        run_steps(prof, len(letters))
    inner = [[event.name for event in cycle.events() if "inner" in event.name] for cycle in prof.cycles]
    assert inner == recorded


def test_accumulated_events_cover_all_cycles() -> None:
    with profile(schedule=plan("SSSN"), acc_events=True) as prof:
        run_steps(prof, 3)
    assert [name for name in names(prof) if name.startswith("inner")] == ["inner 0", "inner 1", "inner 2"]
    assert {row.key: row.count for row in prof.key_averages()}["outer"] == 3


def test_old_cycles_are_dropped() -> None:
    with profile(schedule=plan("SSSN"), keep_cycles=1) as prof:
        run_steps(prof, 3)
    assert len(prof.cycles) == 1
    assert "inner 2" in names(prof)


def test_keeping_no_cycle_is_refused() -> None:
    with pytest.raises(UsageError, match="keep_cycles is 0"):
        profile(keep_cycles=0)


def test_without_a_schedule_steps_are_only_counted() -> None:
    with profile() as prof:
        run_steps(prof, 3)
    assert prof.step_num == 3
    assert not [name for name in names(prof) if name.startswith("ProfilerStep")]


def test_profile_that_ended_warming_up_is_empty() -> None:
    with profile(schedule=plan("W")) as prof:
        work(0)
    assert len(prof.events()) == 0
    assert prof.key_averages().table() == ""
    assert prof.cycles == ()


def test_invalid_schedule_action_is_refused() -> None:
    with pytest.raises(ValueError, match="answered None for step 0"):
        profile(schedule=lambda _step: None)


def test_empty_last_cycle_warns() -> None:
    prof = profile(schedule=schedule(wait=0, warmup=1, active=1))
    prof.start()
    prof.step()
    prof.step()
    with pytest.warns(UserWarning, match="its last cycle is empty: give the schedule repeat=1"):
        prof.stop()
    assert len(prof.cycles) == 1
