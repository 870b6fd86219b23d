"""The marker in the first line of a comment."""

import pytest

from pytest_opprof.forge.sticky import Marker, sticky_key

MARKER = Marker(key="0123456789abcdef", head="b" * 40, run=4, attempt=2)


def test_marker_is_read_from_the_first_line_alone() -> None:
    assert MARKER.line == f"<!-- opprof:sticky v1 key=0123456789abcdef head={'b' * 40} run=4.2 -->"
    for body in (MARKER.line, f"{MARKER.line}\ntext", f"{MARKER.line}\r\ntext", f"{MARKER.line} \ntext"):
        assert Marker.of(body) == MARKER


@pytest.mark.parametrize(
    "body",
    [
        "",
        f"text\n{MARKER.line}",
        f"> {MARKER.line}",
        f"{MARKER.line} more",
        MARKER.line.replace("v1", "v2"),
        MARKER.line.replace("run=4", "run=4000000000000000000"),
        MARKER.line.replace("0123", "012g"),
    ],
)
def test_anything_else_is_no_marker(body: str) -> None:
    assert Marker.of(body) is None


def test_key_tells_everything_apart() -> None:
    keys = {
        sticky_key("a/b", 1, "default"),
        sticky_key("a/b", 11, "default"),
        sticky_key("a/b", 1, "1default"),
        sticky_key("a/b\n1", 1, "default"),
        sticky_key("a/c", 1, "default"),
        sticky_key("a/b", 1, "\ud800"),
    }
    assert len(keys) == 6
    assert all(len(key) == 16 for key in keys)
