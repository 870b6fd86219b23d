"""The table of transitions: every cell, and rules that hold in all of them."""

import itertools

import pytest

from pytest_opprof.profiler.schedule import ProfilerAction
from pytest_opprof.profiler.stepper import TRANSITIONS, Move

NONE, WARMUP, RECORD, SAVE = ProfilerAction
P, T, X, C, W = Move.PREPARE, Move.START, Move.STOP, Move.DELIVER, Move.WARN

# torch.profiler's table, except where a cell says otherwise; None is the end.
CELLS = {
    (NONE, NONE): [],
    (NONE, WARMUP): [P],
    (NONE, RECORD): [P, T],
    (NONE, SAVE): [P, T],
    (NONE, None): [],
    (WARMUP, NONE): [T, X, W],
    (WARMUP, WARMUP): [],
    (WARMUP, RECORD): [T],
    (WARMUP, SAVE): [T],
    (WARMUP, None): [T, X],
    (RECORD, NONE): [X, C, W],  # torch keeps the events to itself
    (RECORD, WARMUP): [X, C, P, W],  # torch delivers nothing, and crashes in the next recording
    (RECORD, RECORD): [],
    (RECORD, SAVE): [],
    (RECORD, None): [X, C],
    (SAVE, NONE): [X, C],
    (SAVE, WARMUP): [X, C, P],
    (SAVE, RECORD): [X, C, P, T],
    (SAVE, SAVE): [X, C, P, T],
    (SAVE, None): [X, C],
}


def cell_id(cell: tuple[ProfilerAction, ProfilerAction | None]) -> str:
    previous, following = cell
    return f"{previous.name}-{'end' if following is None else following.name}"


@pytest.mark.parametrize("cell", CELLS, ids=cell_id)
def test_each_cell_makes_its_moves(cell: tuple[ProfilerAction, ProfilerAction | None]) -> None:
    assert list(TRANSITIONS[cell]) == CELLS[cell]


def test_every_cell_exists() -> None:
    assert set(TRANSITIONS) == set(itertools.product(ProfilerAction, [*ProfilerAction, None]))


def window_is_open(action: ProfilerAction) -> bool:
    return action in {RECORD, SAVE}


def test_windows_are_open_exactly_while_recording() -> None:
    for (previous, following), moves in TRANSITIONS.items():
        is_open = window_is_open(previous)
        for move in moves:
            if move is Move.START:
                assert not is_open
                is_open = True
            elif move is Move.STOP:
                assert is_open
                is_open = False
        assert is_open == (following is not None and window_is_open(following))


def test_every_start_was_prepared() -> None:
    for (previous, _), moves in TRANSITIONS.items():
        prepared = previous is WARMUP
        for move in moves:
            assert move is not Move.START or prepared
            prepared = prepared or move is Move.PREPARE


def test_warnings_come_last() -> None:
    assert all(Move.WARN not in moves[:-1] for moves in TRANSITIONS.values())
