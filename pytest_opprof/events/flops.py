"""FLOPs of ops: the registry of formulas, and their evaluation, once for each distinct op and its inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.errors import UsageError
from pytest_opprof.events.columns import Compat
from pytest_opprof.events.flop_formulas import FORMULAS, TORCHS, Formula

_formulas: dict[str, Formula] = dict(FORMULAS)


def register_flop_formula(*names: str) -> Callable[[Formula], Formula]:
    """Give ops of your own a formula, or known ones another.

    Example::

        @register_flop_formula("mylib::attention")
        def attention(inputs):
            (batch, queries, width), (_, keys, _), *_ = inputs.shapes
            return 4 * batch * queries * keys * width

    Args:
        names: The ops' names.

    Returns:
        A decorator of a function from `Inputs` to a number of FLOPs; None where it cannot be told.

    Raises:
        UsageError: No name is given.
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError('register_flop_formula needs the names of ops: @register_flop_formula("mylib::op")')

    def register(formula: Formula) -> Formula:
        _formulas.update(dict.fromkeys(names, formula))
        return formula

    return register


def flops_of(name: str, inputs: Inputs | None, *, compat: Compat | None = None) -> int | None:
    """The FLOPs of one execution of an op, by its formula.

    Args:
        name: The op's name.
        inputs: What it was given; None where that was not recorded.
        compat: ``"torch"`` knows only the seven ops that torch.profiler knows.

    Returns:
        None where there is no formula, or it cannot tell.
    """
    formula = _formulas.get(name) if compat is None else TORCHS.get(name)
    if formula is None or inputs is None:
        return None
    try:
        flops = formula(inputs)
        return None if flops is None else max(int(flops), 0)
    except Exception as error:  # noqa: BLE001  # a user's formula, or inputs as no formula expects them
        warnings.warn(
            f"the FLOP formula of {name} failed on inputs of shapes {inputs.shapes}: "
            f"{type(error).__name__}: {error}; its FLOPs are left out",
            stacklevel=2,
        )
        return None
