"""The wording of a change in one line."""

import pytest

from pytest_opprof.compare.comparison import Rewrite, RewriteKind


@pytest.mark.parametrize(("further", "end"), [(0, "op3"), (1, "1 more"), (5, "5 more")])
def test_the_names_that_have_no_room_are_counted(further: int, end: str) -> None:
    names = tuple(f"op{number + 1}" for number in range(3 + further))
    rewrite = Rewrite(kind=RewriteKind.FUSED, before=names, after=("one",))
    assert str(rewrite).partition(" -> ")[0].rpartition(" + ")[2] == end
