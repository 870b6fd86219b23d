"""Random numbers of measured tests: the same in each session, and in each call but the first."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest


@dataclass(frozen=True, slots=True)
class _Generator:
    """A process-wide generator of random numbers."""

    find: Callable[[], Any]  # finds the object with its state; None if that was not imported yet
    get: Callable[[Any], Any]  # its state, which `set` restores
    set: Callable[[Any, Any], object]
    seed: Callable[[Any, int], object]


def _of_torch() -> list[Any] | None:
    """The CPU's generator and, once CUDA is in use, each GPU's: torch.manual_seed() would start CUDA."""
    default = getattr(sys.modules.get("torch"), "default_generator", None)
    cuda: Any = sys.modules.get("torch.cuda")
    if default is None:
        return None
    return [default, *(cuda.default_generators if cuda is not None and cuda.is_initialized() else ())]


_GENERATORS: Final = {
    "random": _Generator(
        lambda: sys.modules.get("random"),
        lambda found: found.getstate(),
        lambda found, state: found.setstate(state),
        lambda found, seed: found.seed(seed),
    ),
    "numpy": _Generator(
        lambda: getattr(sys.modules.get("numpy"), "random", None),  # which imports it
        lambda found: found.get_state(legacy=False),
        lambda found, state: found.set_state(state),
        lambda found, seed: found.seed(seed),
    ),
    "torch": _Generator(
        _of_torch,
        lambda found: [one.get_state() for one in found],
        lambda found, states: [one.set_state(state) for one, state in zip(found, states, strict=False)],
        lambda found, seed: [one.manual_seed(seed) for one in found],
    ),
}


class Seeds:
    """Makes all calls of a measured test but the first draw the same numbers; without a seed it does nothing.

    Tests that draw their data often do not seed, and their ops may depend on the data. The first call, which
    decides the outcome, draws as without us.
    """

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._in_setup = False
        self._noted: dict[str, Any] = {}
        self._running: pytest.FixtureDef[Any] | None = None
        self._left: dict[tuple[pytest.FixtureDef[Any], str], Any] = {}
        self._of_fixtures: dict[str, Any] = {}
        self._after_first: dict[str, Any] | None = None

    def begin(self, *, is_measured: bool) -> None:
        """A test is about to be set up."""
        self._in_setup = is_measured and self._seed is not None
        self._of_fixtures = {}

    @contextlib.contextmanager
    def fixture(self, fixture: pytest.FixtureDef[Any]) -> Iterator[None]:
        """A fixture is set up: if each test has its own, its seed holds in all calls.

        What a lasting fixture leaves is only there in the first of its tests, which another session may skip.
        """
        if not self._in_setup:
            yield
            return
        self._note()  # it may run inside another one
        outer, self._running = self._running, fixture if fixture.scope == "function" else None
        try:
            yield
        finally:
            self._note()
            self._running = outer

    def _note(self) -> None:
        """Note the states that the running fixture set since the last note."""
        before, self._noted = self._noted, _states()
        if self._running is None:
            return
        for name in before.keys() & self._noted.keys():
            state, key = self._noted[name], (self._running, name)
            # If the test before drew nothing, a seed changes nothing.
            if not _is_same(before[name], state) or _is_same(self._left.get(key), state):
                self._of_fixtures[name] = self._left[key] = state

    def first_call(self) -> None:
        """It was set up."""
        self._in_setup = False

    def next_call(self) -> None:
        """It will be called again."""
        if self._seed is None:
            return
        if self._after_first is None:
            self._after_first = _states()
        for name, generator in _found():
            with contextlib.suppress(Exception):
                if name in self._of_fixtures:
                    _GENERATORS[name].set(generator, self._of_fixtures[name])
                else:
                    _GENERATORS[name].seed(generator, self._seed)

    def end(self) -> None:
        """It is not called again, unless another plugin runs it again from its setup on."""
        self._in_setup = self._seed is not None
        states, self._after_first = self._after_first, None
        for name, generator in _found():
            if states and name in states:
                with contextlib.suppress(Exception):
                    _GENERATORS[name].set(generator, states[name])


def _found() -> Iterator[tuple[str, Any]]:
    """What generates numbers now. A test may have replaced it by an object that can do less."""
    for name, generator in _GENERATORS.items():
        found = None
        with contextlib.suppress(Exception):
            found = generator.find()
        if found is not None:
            yield name, found


def _states() -> dict[str, Any]:
    states = {}
    for name, generator in _found():
        with contextlib.suppress(Exception):
            states[name] = _GENERATORS[name].get(generator)
    return states


def _is_same(one: Any, other: Any) -> bool:
    """Whether two states of a generator are the same: numbers, arrays and tensors, in lists and dicts."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return all(map(_is_same, one, other))  # CUDA may have started since
    values = getattr(one, "tolist", None)
    return bool(one == other if values is None else values() == other.tolist())
