"""record_function as a decorator: wrapped functions keep their meaning and attributes."""

import abc
import copy
import functools
import gc
import inspect
import pickle
import types
import typing
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest
from support.programs.windows import Window, callers, names, unfinished

from pytest_opprof import record_function


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
    assert instance.method == instance.method  # each look-up binds again


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
def test_any_callable_can_be_decorated(
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
def test_suspending_functions_keep_their_kind(
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
