"""Which recorded ops are views, against torch's schemas of all registered ops."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from support.programs.windows import RANGES_AND_OPS, Window

from pytest_opprof.capture.recording import Recording
from pytest_opprof.kinds import FLAG_VIEW

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("torch_collector")

# A first argument of each type; the op may reject it.
ARGUMENTS: dict[str, object] = {
    "Tensor": torch.ones(2, 3, 4),
    "int": 1,
    "SymInt": 1,
    "List[int]": [0],
    "List[SymInt]": [0],
    "bool": False,
    "float": 1.0,
    "number": 1,
}


def schemas() -> Iterator[Any]:
    """Schemas of all ops in torch's dispatcher; its list includes TorchScript's, which are never recorded."""
    for schema in torch._C._jit_get_all_schemas():
        full_name = f"{schema.name}.{schema.overload_name}".rstrip(".")
        if schema.name.startswith("aten::") and torch._C._dispatch_has_kernel(full_name):
            yield schema


def is_aliasing(schema: Any) -> bool:
    infos = [result.alias_info for result in schema.returns]
    return bool(infos) and all(info is not None and not info.is_write for info in infos)


def aliasing_ops() -> dict[str, set[bool]]:
    found = defaultdict(set)
    for schema in schemas():
        found[schema.name].add(is_aliasing(schema))
    return dict(found)


def expected_views(recording: Recording) -> list[bool]:
    """Each event's answer, from its own schema and those of its callees."""
    aliases = {name for name, answers in aliasing_ops().items() if answers == {True}}
    inside = defaultdict(list)
    for event, parent in enumerate(recording.parent):
        inside[parent].append(event)

    def is_view(event: int) -> bool:
        name = recording.name(event)
        is_part = "::" not in name and recording.name(recording.parent[event]) in aliases
        return (name in aliases or is_part) and all(map(is_view, inside[event]))

    return [is_view(event) for event in range(len(recording))]


def call(schema: Any) -> bool:
    """Call an op with a value for each required argument; return whether that is possible."""
    given = []
    for argument in schema.arguments:
        if argument.kwarg_only or argument.has_default_value():
            continue
        kind = str(argument.type)
        if kind not in ARGUMENTS:
            return False
        value = ARGUMENTS[kind]
        given.append(value.clone() if isinstance(value, torch.Tensor) else value)
    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"))
    overload = getattr(packet, schema.overload_name or "default")
    failures = (RuntimeError, IndexError, NotImplementedError, ValueError, TypeError)
    with torch.no_grad(), contextlib.suppress(*failures):  # it was recorded anyway
        overload(*given)
    return True


def test_overloads_of_a_name_agree() -> None:
    answers = aliasing_ops()
    assert len(answers) > 1_000
    assert [name for name, found in answers.items() if len(found) > 1] == []


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")  # each op is called, old ones too
def test_views_match_the_schemas() -> None:
    wanted = [
        schema
        for schema in schemas()
        if is_aliasing(schema) or (len(schema.arguments) == 1 and not schema.name.startswith("aten::_"))
    ]
    with Window(sources=RANGES_AND_OPS) as window:
        called = {schema.name for schema in wanted if call(schema)}
    recording = window.recording
    found = [bool(flags & FLAG_VIEW) for flags in recording.flags]
    expected = expected_views(recording)
    names = [recording.name(event) for event in range(len(recording))]
    wrong = {name for name, ours, theirs in zip(names, found, expected, strict=True) if ours is not theirs}
    assert wrong == set()
    aliasing = {schema.name for schema in wanted if is_aliasing(schema)}
    assert len(aliasing & called) > 60
    assert aliasing & called <= set(names)
    views = {name for name, ours in zip(names, found, strict=True) if ours}
    assert {"aten::view", "aten::chunk", "aten::detach", "aten::contiguous"} <= views
    assert set(names) - views - aliasing
