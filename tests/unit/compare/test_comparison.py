"""How what changed is written in one line."""

import pytest

from pytest_opprof.compare.comparison import _MOST_NAMES, _joined


@pytest.mark.parametrize(("further", "end"), [(0, f"op{_MOST_NAMES}"), (1, "1 more"), (5, "5 more")])
def test_the_names_that_have_no_room_are_counted(further: int, end: str) -> None:
    names = tuple(f"op{number + 1}" for number in range(_MOST_NAMES + further))
    assert _joined(names).rpartition(" + ")[2] == end
