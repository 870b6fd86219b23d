"""Random mutations of inputs that mostly stay JSON: other bytes get no reader far."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

Mutate = Callable[[bytes, int], bytes]
# Only the first places of a large file are changed: to list all would take longer than to read it.
_MOST_PLACES: Final = 3_000
_NUMBERS: Final = (
    *(0, 1, -1, 2, 3, 7, 255, 1_000, 2**31 - 1, 2**31, 2**32, 2**53 - 1, 2**53, 2**62, 2**63 - 1, 2**63),
    *(
        -(2**31),
        -(2**53),
        -(2**63),
        -(2**63) - 1,
        2**64,
        10**30,
        0.5,
        -0.0,
        1e-9,
        1e300,
        float("inf"),
        float("nan"),
    ),
)
_TEXTS: Final = (
    *("", " ", "\0", "\n", "\x1b[31m", "\ud800", "\udcff", "\u202e", "日本", "\N{PILE OF POO}", "a" * 300),
    *("/", "..", "../../x", "/dev/null", "-1", "0x1", "1e9", "NaN", "null", "<!--", "%s", "{0}", "%", "::"),
    *("2026-01-02T03:04:05Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
)
_OTHERS: Final[tuple[Any, ...]] = (None, True, False, [], {}, [[]], {"": None})


class JsonMutator:
    """Changes values of JSON files; other inputs, and one input in four, are changed bytewise.

    Args:
        mutate: Changes bytes, up to a maximum length: libFuzzer does it.
        words: Texts to insert besides those that are hostile anywhere.
    """

    def __init__(self, mutate: Mutate, words: Sequence[str]) -> None:
        self._mutate = mutate
        self._texts = (*_TEXTS, *words, *words)

    def __call__(self, data: bytes, max_size: int, seed: int) -> bytes:
        """Another input, made from this one."""
        chance = random.Random(seed)  # noqa: S311 - no secret
        if chance.random() < 0.25:
            return self._mutate(data, max_size)
        try:
            document = [json.loads(data)]
            for _ in range(1 + chance.randrange(3)):
                self._change(document, chance)
            changed = json.dumps(document[0], separators=(",", ":")).encode("ascii")
        except (ValueError, RecursionError):
            return self._mutate(data, max_size)
        return changed if len(changed) <= max_size else self._mutate(data, max_size)

    def _change(self, document: list[Any], chance: random.Random) -> None:
        places = _places(document)
        container, key = chance.choice(places)
        kind = chance.randrange(10)
        if kind == 0 and container is not document:
            del container[key]
        elif kind == 1:
            other, its = chance.choice(places)
            container[key] = json.loads(json.dumps(other[its]))
        elif kind == 2 and isinstance(container, list) and container is not document:
            container.insert(key, json.loads(json.dumps(container[key])))
        elif kind == 3 and isinstance(container, dict):
            container[chance.choice(self._texts)] = container[key]
        else:
            container[key] = self._value(container[key], chance)

    def _value(self, value: Any, chance: random.Random) -> Any:
        """Mostly another value of the same type: a wrong type is soon refused."""
        if chance.random() < 0.15:
            return chance.choice(chance.choice((_NUMBERS, self._texts, _OTHERS)))
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return chance.choice((value + 1, value - 1, -value, *chance.sample(_NUMBERS, 4)))
        if isinstance(value, str):
            at = chance.randrange(len(value) + 1)
            text = chance.choice(self._texts)
            return chance.choice((text, value[:at] + text + value[at:], value[:at], value[at:]))
        return chance.choice(_OTHERS)


def _places(document: list[Any]) -> list[tuple[Any, Any]]:
    """Each value, as its container and the index or key."""
    found: list[tuple[Any, Any]] = []
    queue: list[Any] = [document]
    while queue and len(found) < _MOST_PLACES:
        container = queue.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            found.append((container, key))
            if isinstance(container[key], dict | list):
                queue.append(container[key])
    return found
