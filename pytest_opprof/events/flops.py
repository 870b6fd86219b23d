"""FLOP formulas that users register. Those of torch's ops are in native/src/result/flop_formulas.c."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.errors import UsageError

Formula = Callable[[Inputs], int | None]

_registered: dict[str, Formula] = {}


def register_flop_formula(*names: str) -> Callable[[Formula], Formula]:
    """Register a FLOP formula for your own ops, or replace that of known ones.

    A formula stands for all ops inside: for other FLOPs of `torch.nn.Linear`, replace that of
    ``aten::linear``, the outer op, and not that of ``aten::addmm``.

    Example::

        @register_flop_formula("mylib::attention")
        def attention(inputs):
            (batch, queries, width), (_, keys, _), *_ = inputs.shapes
            return 4 * batch * queries * keys * width

    Returns:
        A decorator for a function that takes `Inputs` and returns FLOPs, or None if unknown.

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
    """The registered formulas by op. One that raises becomes a warning and gives None."""
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
