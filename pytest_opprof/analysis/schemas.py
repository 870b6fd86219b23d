"""Which inputs an op may write to, by torch's schemas of its name."""

from __future__ import annotations

import sys
from typing import Any


def written_inputs(name: str, dtypes: tuple[str, ...]) -> tuple[bool, ...] | None:
    """For each input of an op, whether it may be written to; None if it is not an op of torch.

    Overloads are not recorded, so an input counts as written to if any overload that takes such inputs writes
    to it. Without torch, only the name tells: ``aten::add_`` writes to its first input.
    """
    if "::" not in name:
        return None
    places = range(len(dtypes))
    torch = sys.modules.get("torch")
    if torch is None:
        return tuple(place == 0 and name.endswith("_") for place in places)
    try:
        schemas = torch._C._jit_get_schemas_for_operator(name)  # noqa: SLF001  # as torch's profiler asks
    except RuntimeError:  # a C++ range may have such a name without being an op
        return None
    fitting = [schema.arguments for schema in schemas if _fit(schema.arguments, dtypes)]
    if not fitting:
        return None
    written_to = [[getattr(one.alias_info, "is_write", False) for one in arguments] for arguments in fitting]
    return tuple(any(overload[place] for overload in written_to) for place in places)


def _fit(arguments: Any, dtypes: tuple[str, ...]) -> bool:
    return len(arguments) == len(dtypes) and all(
        _takes(str(argument.type), dtype) for argument, dtype in zip(arguments, dtypes, strict=True)
    )


def _takes(wanted: str, dtype: str) -> bool:
    if wanted.startswith("Optional["):
        return not dtype or _takes(wanted.removeprefix("Optional[").removesuffix("]"), dtype)
    if wanted == "Tensor":
        # An undefined tensor has no type, but is a tensor.
        return dtype not in {"TensorList", "Scalar", "ScalarList"}
    if wanted.startswith("List["):
        return dtype in ({"TensorList", ""} if "Tensor" in wanted else {"ScalarList", "Scalar", ""})
    return dtype in {"Scalar", ""}
