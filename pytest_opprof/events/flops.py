"""Formulas of one's own for the FLOPs of ops. Those of torch's ops are native/src/result/flop_formulas.c."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.errors import UsageError

Formula = Callable[[Inputs], int | None]

_registered: dict[str, Formula] = {}


def register_flop_formula(*names: str) -> Callable[[Formula], Formula]:
    """Give ops of your own a formula, or known ones another.

    Example::

        @register_flop_formula("mylib::attention")
        def attention(inputs):
            (batch, queries, width), (_, keys, _), *_ = inputs.shapes
            return 4 * batch * queries * keys * width

    Returns:
        A decorator of a function from `Inputs` to a number of FLOPs; None where it cannot be told.

    Raises:
        UsageError: No name is given.
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError('register_flop_formula needs the names of ops: @register_flop_formula("mylib::op")')

    def register(formula: Formula) -> Formula:
        _registered.update(dict.fromkeys(names, formula))
        return formula

    return register


def registered_formulas() -> Mapping[str, Formula]:
    """The formulas of one's own by the names of their ops; one that raises warns, and tells nothing."""
    return {name: partial(_flops_of, name, formula) for name, formula in _registered.items()}


def _flops_of(name: str, formula: Formula, inputs: Inputs) -> int | None:
    try:
        flops = formula(inputs)
        return None if flops is None else max(int(flops), 0)
    except Exception as error:  # noqa: BLE001  # a user's formula
        warnings.warn(
            f"the FLOP formula of {name} failed on inputs of shapes {inputs.shapes}: "
            f"{type(error).__name__}: {error}; its FLOPs are left out",
            stacklevel=2,
        )
        return None
