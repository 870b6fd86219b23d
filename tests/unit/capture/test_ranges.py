"""record_function, range_push and range_pop: what they take, and what they leave behind."""

import abc
import copy
import functools
import gc
import inspect
import pickle
import sys
import tracemalloc
import types
import typing
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest
from windows import Window, asynchronous, callers, names, unfinished

from pytest_opprof import range_pop, range_push, record_function

LONGEST_NAME = 1024  # bytes: OP_NAME_MAX_BYTES
LONGEST_ARGS = 1024  # bytes: TEXT_MAX in fast.c


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
        pytest.param("x" * 5000, "x" * LONGEST_NAME, id="ascii"),
        pytest.param("é" * 5000, "é" * (LONGEST_NAME // 2), id="two-bytes"),
        pytest.param("本" * 5000, "本" * (LONGEST_NAME // 3), id="three-bytes"),
        pytest.param("🔥" * 5000, "🔥" * (LONGEST_NAME // 4), id="four-bytes"),
        pytest.param("\ud800" * 5000, "\ud800" * (LONGEST_NAME // 3), id="surrogates"),
    ],
)
def test_long_names_are_cut_at_a_character(name: str, kept: str) -> None:
    with Window() as window, record_function(name):
        pass
    assert names(window.recording) == [kept]


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


def test_name_is_read_only() -> None:
    scope = record_function("x")
    with pytest.raises(AttributeError):
        scope.name = "y"
    assert repr(scope) == "record_function('x')"


def test_subclass_has_arguments_of_its_own() -> None:
    class Layer(record_function):
        def __init__(self, number: int) -> None:
            super().__init__(f"layer {number}")
            self.number = number

    with Window() as window, Layer(3) as layer:
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


# ---- decorator ----


def test_decorated_function_keeps_its_meaning() -> None:
    @record_function("sum")
    def total(a: int, *rest: int, scale: int = 1) -> int:
        return (a + sum(rest)) * scale

    with Window() as window:
        assert total(1, 2, 3, scale=10) == 60
        with pytest.raises(TypeError, match="missing 1 required"):
            total()  # type: ignore[call-arg]  # that is what fails
    assert names(window.recording) == ["sum", "sum"]
    assert not any(unfinished(window.recording))


def test_decorated_function_nests_in_itself() -> None:
    @record_function("fib")
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    with Window() as window:
        assert fib(5) == 5
    assert len(window.recording) == 15
    assert callers(window.recording) == [None] + ["fib"] * 14


def test_decorated_function_lets_exceptions_through() -> None:
    @record_function("fails")
    def fails() -> None:
        raise KeyError("x")

    with Window() as window, pytest.raises(KeyError):
        fails()
    assert not any(unfinished(window.recording))


class Decorated:
    @record_function("method")
    def method(self, x: int) -> tuple[object, int]:
        return self, x

    @classmethod
    @record_function("inside classmethod")
    def class_inside(cls, x: int) -> tuple[object, int]:
        return cls, x

    @record_function("around classmethod")
    @classmethod
    def class_around(cls, x: int) -> tuple[object, int]:
        return cls, x

    @staticmethod
    @record_function("inside staticmethod")
    def static_inside(x: int) -> int:
        return x

    @record_function("around staticmethod")
    @staticmethod
    def static_around(x: int) -> int:
        return x

    @property
    @record_function("property")
    def prop(self) -> int:
        return 7


def test_methods_are_bound_as_usual() -> None:
    instance = Decorated()
    with Window() as window:
        assert instance.method(1) == (instance, 1)
        assert Decorated.method(instance, 2) == (instance, 2)
        assert instance.prop == 7
    assert names(window.recording) == ["method", "method", "property"]
    assert inspect.ismethod(instance.method)
    assert instance.method == instance.method  # each look-up binds anew


@pytest.mark.parametrize("owner", [Decorated, Decorated()], ids=["class", "instance"])
def test_class_and_static_methods_are_bound_as_usual(owner: Any) -> None:
    with Window() as window:
        assert owner.class_inside(1) == owner.class_around(1) == (Decorated, 1)
        assert owner.static_inside(1) == owner.static_around(1) == 1
    assert names(window.recording) == [
        "inside classmethod",
        "around classmethod",
        "inside staticmethod",
        "around staticmethod",
    ]


class Callable_:  # noqa: N801  # an object that can be called
    def __call__(self, x: int) -> int:
        return x

    def plus_one(self, x: int) -> int:
        return x + 1


def times_two(x: int) -> int:
    return x * 2


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda x: -x, -4, id="lambda"),
        pytest.param(abs, 4, id="builtin"),
        pytest.param(functools.partial(pow, 2), 16, id="partial"),
        pytest.param(functools.partial(functools.partial(times_two)), 8, id="partial-of-partial"),
        pytest.param(Callable_(), 4, id="instance"),
        pytest.param(Callable_().plus_one, 5, id="bound-method"),
        pytest.param(float, 4.0, id="class"),
        pytest.param(record_function("inner")(times_two), 8, id="decorated"),
    ],
)
@pytest.mark.parametrize("args", [None, "text"], ids=["plain", "with-args"])
def test_whatever_is_called_can_be_decorated(
    function: Callable[[int], float], expected: float, args: str | None
) -> None:
    decorated = record_function("call", args)(function)
    with Window() as window:
        assert decorated(4) == expected
    assert names(window.recording)[0] == "call"
    assert window.recording.args_text(0) == args


def undefined(owner: object) -> int:
    return 3


@pytest.mark.parametrize(
    "what", [3, "text", None, property(undefined)], ids=["number", "text", "none", "property"]
)
def test_only_callables_are_decorated(what: Any) -> None:
    with pytest.raises(TypeError, match=r"decorates a callable, not \w+"):
        record_function("x")(what)


@record_function("documented")
def documented(x: int, *, y: "str" = "") -> list[int]:
    """Says what it does."""
    return [x]


def undecorated(x: int, *, y: "str" = "") -> list[int]:
    """Says what it does."""
    return [x]


def test_decorated_function_looks_like_what_it_wraps() -> None:
    assert documented.__name__ == "documented"
    assert documented.__qualname__ == "documented"
    assert documented.__module__ == __name__
    assert documented.__doc__ == "Says what it does."
    assert inspect.signature(documented) == inspect.signature(undecorated)
    assert typing.get_type_hints(documented) == typing.get_type_hints(undecorated)
    assert inspect.isfunction(inspect.unwrap(documented))
    assert "documented" in repr(documented)


def test_attributes_of_the_function_are_kept() -> None:
    class Shape(abc.ABC):
        @record_function("area")
        @abc.abstractmethod
        def area(self) -> float: ...

    assert Shape.__abstractmethods__ == {"area"}

    def marked() -> None: ...

    marked.pytestmark = ["mark"]  # type: ignore[attr-defined]  # as pytest does it
    assert record_function("x")(marked).pytestmark == ["mark"]  # type: ignore[attr-defined]  # same


def test_decorated_function_pickles_by_name() -> None:
    assert pickle.loads(pickle.dumps(documented)) is documented  # noqa: S301  # made in this line
    assert copy.deepcopy({"f": documented})["f"] is documented


def test_decorated_function_can_be_weakly_referenced() -> None:
    decorated = record_function("x")(lambda: None)
    reference = weakref.ref(decorated)
    assert reference() is decorated
    del decorated
    gc.collect()
    assert reference() is None


def test_cycle_through_a_decorated_function_is_collected() -> None:
    decorated = record_function("x")(lambda: None)
    decorated.me = decorated  # type: ignore[attr-defined]  # any attribute does
    reference = weakref.ref(decorated)
    del decorated
    gc.collect()
    assert reference() is None


def test_decorators_stack() -> None:
    @record_function("outer")
    @record_function("inner")
    def function() -> int:
        return 1

    with Window() as window:
        assert function() == 1
    assert callers(window.recording) == [None, "outer"]


def test_subclass_decorates_in_its_own_way() -> None:
    class Counting(record_function):
        entered = 0

        def __enter__(self) -> typing.Self:
            Counting.entered += 1
            return super().__enter__()

    @Counting("counted")
    def function() -> int:
        return 1

    with Window() as window:
        assert function() == 1
    assert Counting.entered == 1
    assert names(window.recording) == ["counted"]


async def coroutine() -> int:
    return 1


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@types.coroutine
def generator_coroutine() -> Generator[None, None, int]:
    yield
    return 1


KINDS = [
    pytest.param(coroutine, inspect.iscoroutinefunction, id="coroutine"),
    pytest.param(generator, inspect.isgeneratorfunction, id="generator"),
    pytest.param(async_generator, inspect.isasyncgenfunction, id="async-generator"),
    pytest.param(
        generator_coroutine,
        lambda f: f.__code__.co_flags & inspect.CO_ITERABLE_COROUTINE,
        id="types.coroutine",
    ),
]


@pytest.mark.parametrize(("function", "is_kind"), KINDS)
@pytest.mark.parametrize("args", [None, "text"], ids=["plain", "with-args"])
def test_suspending_functions_stay_what_they_are(
    function: Callable[..., Any], is_kind: Callable[[Any], bool], args: str | None
) -> None:
    decorated = record_function("suspends", args)(function)
    assert is_kind(decorated)
    assert decorated.__name__ == function.__name__
    assert decorated.__wrapped__ is function  # type: ignore[attr-defined]  # functools sets it


@pytest.mark.parametrize(("function", "is_kind"), KINDS[:3])
def test_partials_of_suspending_functions_suspend(
    function: Callable[..., Any], is_kind: Callable[[Any], bool]
) -> None:
    assert is_kind(record_function("suspends")(functools.partial(function)))


@pytest.mark.parametrize(("function", "is_kind"), KINDS[:3])
def test_static_methods_that_suspend_are_decorated(
    function: Callable[..., Any], is_kind: Callable[[Any], bool]
) -> None:
    assert is_kind(record_function("suspends")(staticmethod(function)).__func__)  # type: ignore[attr-defined]


# ---- range_push, range_pop ----


def test_push_and_pop_tell_the_depth() -> None:
    with Window() as window:
        assert [range_push("a"), range_push("b"), range_push("c")] == [0, 1, 2]
        assert [range_pop(), range_pop()] == [2, 1]
        assert [range_push("d"), range_pop(), range_pop()] == [1, 1, 0]
    assert names(window.recording) == ["a", "b", "c", "d"]
    assert callers(window.recording) == [None, "a", "b", "a"]


def test_depth_is_told_outside_of_windows_too() -> None:
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


# ---- nothing is left behind ----

USES = 10_000


def use_with() -> None:
    name = "leak"
    for _ in range(USES):
        with record_function(name, "text"):
            pass


def use_decorator() -> None:
    for _ in range(USES):
        record_function("leak")(lambda: None)()


def use_calls() -> None:
    decorated = record_function("leak")(lambda: None)
    for _ in range(USES):
        decorated()


def use_coroutines() -> None:
    decorated = record_function("leak")(coroutine)
    for _ in range(USES):
        with pytest.raises(StopIteration):
            decorated().send(None)


def use_generators() -> None:
    decorated = record_function("leak")(generator)
    for _ in range(USES):
        next(decorated())  # each is dropped while suspended


def use_pushes() -> None:
    for _ in range(USES):
        range_push("leak")
        range_pop()


def use_errors() -> None:
    for _ in range(USES):
        with pytest.raises(TypeError):
            record_function("leak", 3)  # type: ignore[arg-type]  # that is what fails


def use_subclass() -> None:
    class Sub(record_function):
        pass

    for _ in range(USES):
        scope = Sub("leak")
        scope.__init__("leak again", "text")  # type: ignore[misc]  # allowed, as for any Python class
        with scope, scope, scope:
            pass


@pytest.mark.parametrize("records", [False, True], ids=["idle", "recording"])
@pytest.mark.parametrize(
    "use",
    [
        use_with,
        use_decorator,
        use_calls,
        use_coroutines,
        use_generators,
        use_pushes,
        use_errors,
        use_subclass,
    ],
    ids=lambda use: use.__name__,
)
def test_uses_leave_nothing_behind(use: Callable[[], None], *, records: bool) -> None:
    def measured() -> tuple[int, int, int, int]:
        gc.collect()
        held = (sys.getrefcount(record_function), sys.getrefcount(type(documented)), sys.getrefcount("leak"))
        return (tracemalloc.get_traced_memory()[0], *held)

    def run() -> None:
        if records:
            with Window():
                use()
        else:
            use()

    run()  # what is made once
    tracemalloc.start()
    try:
        before = measured()
        run()
        after = measured()
    finally:
        tracemalloc.stop()
    kept_bytes, *references = (now - then for now, then in zip(after, before, strict=True))
    assert kept_bytes < USES  # not even a byte a use
    assert all(abs(count) < 100 for count in references)
