"""The tree of errors."""

import pytest

from pytest_opprof import errors

TREE = errors.__doc__ or ""


def _classes() -> list[type[errors.OpprofError]]:
    return [value for value in vars(errors).values() if isinstance(value, type)]


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__name__)
def test_docstring_draws_every_class(kind: type[errors.OpprofError]) -> None:
    (line,) = (line for line in TREE.splitlines() if kind.__name__ in line.split())
    assert str(kind.exit_code) in line.split()


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__name__)
def test_verdicts_keep_their_exit_codes(kind: type[errors.OpprofError]) -> None:
    assert kind.exit_code >= 2
