"""record_function, range_push and range_pop: their arguments, and what they leave behind."""

import copy
import gc
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from support.programs.windows import Window, asynchronous, callers, names, unfinished

from pytest_opprof import range_pop, range_push, record_function

LONGEST_NAME = 8192  # bytes: OP_NAME_MAX_BYTES
KEPT = LONGEST_NAME - 17  # before the digest of a longer one
LONGEST_ARGS = 1024  # bytes: TEXT_MAX in range_parts.c


class Numbered(record_function):
    """A range with an argument and an attribute of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(f"layer {number}")
        self.number = number


# ---- names and arguments ----


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("forward", id="ascii"),
        pytest.param("", id="empty"),
        pytest.param("日本 ∑ é", id="unicode"),
        pytest.param("🔥", id="astral"),
        pytest.param("a\ud800b", id="lone-surrogate"),
        pytest.param("one\ntwo\ttabs\r", id="line-ends"),
        pytest.param("a\"b\\c'd", id="quotes"),
        pytest.param("before\0after", id="nul"),
        pytest.param("x" * LONGEST_NAME, id="longest"),
    ],
)
def test_any_text_is_a_name(name: str) -> None:
    with Window() as window, record_function(name):
        pass
    assert names(window.recording) == [name]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        pytest.param("x" * LONGEST_NAME * 2, "x" * KEPT, id="ascii"),
        pytest.param("é" * LONGEST_NAME * 2, "é" * (KEPT // 2), id="two-bytes"),
        pytest.param("本" * LONGEST_NAME * 2, "本" * (KEPT // 3), id="three-bytes"),
        pytest.param("🔥" * LONGEST_NAME * 2, "🔥" * (KEPT // 4), id="four-bytes"),
        pytest.param("\ud800" * LONGEST_NAME * 2, "\ud800" * (KEPT // 3), id="surrogates"),
    ],
)
def test_long_names_are_cut_at_a_character_and_stay_apart(name: str, kept: str) -> None:
    with Window() as window:
        for each in (name, name, f"{name}!"):
            with record_function(each):
                pass
    first, again, other = names(window.recording)
    assert re.fullmatch(f"{kept}~[0-9a-f]{{16}}", first)
    assert (again, other[: len(kept)]) == (first, kept)
    assert other != first


def test_arguments_have_names() -> None:
    scope = record_function(name="load", args="batch=8")
    assert (scope.name, scope.args) == ("load", "batch=8")
    assert record_function("load", args=None).args is None
    with Window() as window, scope:
        pass
    assert names(window.recording) == ["load"]
    assert window.recording.args_text(0) == "batch=8"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("x" * 5000, "x" * LONGEST_ARGS, id="long"),
        pytest.param("a" + "é" * 5000, "a" + "é" * ((LONGEST_ARGS - 1) // 2), id="cut-at-a-character"),
        pytest.param("a\ud800\0b", "a?\0b", id="not-encodable"),
    ],
)
def test_args_are_kept_as_text(text: str, kept: str) -> None:
    with Window() as window:
        with record_function("with args", text):
            pass
        with record_function("without"):
            pass
    assert window.recording.args_text(0) == kept
    assert window.recording.args_text(1) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param((), "name", id="nothing"),
        pytest.param((3,), "'name' must be str, not int", id="number"),
        pytest.param((b"x",), "'name' must be str, not bytes", id="bytes"),
        pytest.param((None,), "'name' must be str, not NoneType", id="none"),
        pytest.param(("x", 3), "'args' must be str or None, not int", id="args"),
        pytest.param(("x", "y", "z"), "at most 2 arguments", id="too-many"),
    ],
)
def test_wrong_types_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        record_function(*arguments)


def test_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="nme"):
        record_function("x", nme="y")  # type: ignore[call-arg]  # that is what is refused


def test_a_renamed_range_begins_under_its_new_name() -> None:
    scope = record_function("x")
    with Window() as window:
        with scope:
            scope.name = "y"
        scope.args = "text"
        with scope:
            pass
    assert names(window.recording) == ["x", "y"]
    for attribute in ("name", "args"):
        with pytest.raises(TypeError, match=f"argument '{attribute}' must be str"):
            setattr(scope, attribute, 3)
    assert (repr(scope), scope.args) == ("record_function('y')", "text")
    del scope.args
    assert scope.args is None


def copied_by_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  # our own


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, copied_by_pickle])
def test_a_range_can_be_copied(copied: Callable[[Any], Any]) -> None:
    with Window() as window, record_function("x", "text") as scope:
        again, layer = copied(scope), copied(Numbered(3))
        with again, layer:
            pass
    assert (again.name, again.args, layer.name, layer.number) == ("x", "text", "layer 3", 3)
    assert names(window.recording) == ["x", "x", "layer 3"]


def test_subclass_has_arguments_of_its_own() -> None:
    with Window() as window, Numbered(3) as layer:
        assert layer.number == 3
    assert names(window.recording) == ["layer 3"]


def test_subclass_that_forgets_init_has_no_name() -> None:
    class Silent(record_function):
        def __init__(self) -> None:
            pass

    with Window() as window, Silent():
        pass
    assert names(window.recording) == [""]


def test_name_can_be_given_again() -> None:
    scope = record_function("before", "text")
    with Window() as window:
        with scope:
            scope.__init__("after")  # type: ignore[misc]  # allowed, as for any Python class
        with scope:
            pass
    assert names(window.recording) == ["before", "after"]
    assert [window.recording.args_text(event) for event in range(2)] == ["text", None]


# ---- context manager ----


def test_exceptions_pass_through() -> None:
    with Window() as window, pytest.raises(KeyError), record_function("fails"):
        raise KeyError("x")
    assert names(window.recording) == ["fails"]
    assert not any(unfinished(window.recording))


def test_enter_gives_the_range() -> None:
    scope = record_function("x")
    with scope as entered:
        assert entered is scope


def test_one_range_nests_in_itself() -> None:
    scope = record_function("again")
    with Window() as window, scope, scope, scope:
        pass
    assert callers(window.recording) == [None, "again", "again"]
    assert list(window.recording.parent) == [-1, 0, 1]
    assert not any(asynchronous(window.recording))


def test_many_open_enters_of_one_range_all_end() -> None:
    scope = record_function("deep")
    with Window() as window:
        for _ in range(1000):
            scope.__enter__()
        for _ in range(1000):
            scope.__exit__()
    assert len(window.recording) == 1000
    assert list(window.recording.parent) == list(range(-1, 999))


def test_exit_without_enter_does_nothing() -> None:
    with Window() as window:
        record_function("never entered").__exit__()
    assert names(window.recording) == []
    assert window.recording.stats.unmatched_ends == 0


def test_nothing_is_recorded_outside_of_windows() -> None:
    with record_function("before"):
        pass
    with Window() as window:
        pass
    with record_function("after"):
        pass
    assert names(window.recording) == []


def test_range_entered_before_the_window_never_appears() -> None:
    scope = record_function("early")
    scope.__enter__()
    with Window() as window:
        with record_function("inside"):
            pass
        scope.__exit__()
    assert names(window.recording) == ["inside"]
    assert callers(window.recording) == [None]


def test_early_enter_leaves_later_ones_their_ends() -> None:
    scope = record_function("again")
    scope.__enter__()
    with Window() as window:
        with scope:
            pass
        scope.__exit__()
    assert names(window.recording) == ["again"]
    assert not any(unfinished(window.recording))


def test_range_open_at_the_end_is_unfinished() -> None:
    scope = record_function("late")
    with Window() as window:
        scope.__enter__()
        with record_function("inside"):
            pass
    scope.__exit__()
    assert names(window.recording) == ["late", "inside"]
    assert unfinished(window.recording) == [True, False]
    assert window.recording.duration_ns[0] == -1
    assert window.recording.self_ns[0] == 0
    assert callers(window.recording) == [None, "late"]


def test_end_of_an_earlier_window_changes_nothing() -> None:
    scope = record_function("first window")
    with Window():
        scope.__enter__()
    with Window() as second, record_function("second window"):
        scope.__exit__()
    assert names(second.recording) == ["second window"]
    assert not any(asynchronous(second.recording))
    assert second.recording.stats.unmatched_ends == 1


def test_ends_out_of_order_are_asynchronous() -> None:
    first, second = record_function("first"), record_function("second")
    with Window() as window:
        first.__enter__()
        second.__enter__()
        first.__exit__()
        with record_function("inside"):
            pass
        second.__exit__()
    assert names(window.recording) == ["first", "second", "inside"]
    assert asynchronous(window.recording) == [True, False, False]
    assert callers(window.recording) == [None, None, "second"]
    assert window.recording.self_ns[0] == 0
    assert window.recording.duration_ns[0] > 0


def test_dropped_range_stays_open() -> None:
    with Window() as window:
        record_function("dropped").__enter__()
        gc.collect()
        with record_function("inside"):
            pass
    assert unfinished(window.recording) == [True, False]


# ---- range_push, range_pop ----


def test_push_and_pop_return_the_depth() -> None:
    with Window() as window:
        assert [range_push("a"), range_push("b"), range_push("c")] == [0, 1, 2]
        assert [range_pop(), range_pop()] == [2, 1]
        assert [range_push("d"), range_pop(), range_pop()] == [1, 1, 0]
    assert names(window.recording) == ["a", "b", "c", "d"]
    assert callers(window.recording) == [None, "a", "b", "a"]


def test_depth_is_returned_outside_windows() -> None:
    assert [range_push("a"), range_push("b"), range_pop(), range_pop()] == [0, 1, 1, 0]


def test_pop_without_push_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"range_pop\(\) without a range_push\(\) on this thread"):
        range_pop()


@pytest.mark.parametrize("name", [3, None, b"x"], ids=repr)
def test_push_takes_text_only(name: Any) -> None:
    with pytest.raises(TypeError, match="must be str, not"):
        range_push(name)
    with pytest.raises(RuntimeError, match="without"):
        range_pop()


def test_pop_ends_its_own_range_only() -> None:
    with Window() as window:
        range_push("pushed")
        with record_function("with"):
            range_pop()
    assert names(window.recording) == ["pushed", "with"]
    assert asynchronous(window.recording) == [True, False]


def test_push_and_pop_cross_window_edges() -> None:
    range_push("early")
    with Window() as window:
        range_pop()
        range_push("late")
    range_pop()
    assert names(window.recording) == ["late"]
    assert unfinished(window.recording) == [True]
