"""Our execution traces against those of torch's own observer, of one run: field by field."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import ExecutionTraceObserver, profile

pytestmark = pytest.mark.usefixtures("torch")


def traced_by_both(torch: Any, program: Callable[[Any], object], folder: Path) -> tuple[Any, Any]:
    ours = ExecutionTraceObserver().register_callback(str(folder / "ours.json"))
    theirs = torch.profiler.ExecutionTraceObserver().register_callback(str(folder / "theirs.json"))
    ours.start()
    theirs.start()
    program(torch)
    theirs.stop()
    ours.stop()
    theirs.unregister_callback()
    ours.unregister_callback()
    traces = [json.loads((folder / name).read_bytes()) for name in ("ours.json", "theirs.json")]
    return traces[0], traces[1]


def training(torch: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 1))
    with torch.profiler.record_function("forward", "a text"):
        loss = model(torch.randn(2, 4)).sum()
    with torch.profiler.record_function("backward"):
        loss.backward()


def scalars(torch: Any) -> None:
    x = torch.ones(2, 4)
    torch.full((2,), 0.1)
    torch.add(x, x, alpha=3)
    torch.div(x, x, rounding_mode="floor")
    torch.zeros(2, device="cpu", dtype=torch.long)
    torch.clamp(x, min=0.0)
    torch.add(x, True)


def lists(torch: Any) -> None:
    x = torch.ones(2, 4)
    torch.cat([x, x])
    torch._foreach_mul([torch.ones(1), torch.ones(2)], [1.0, 2.5])
    torch.split(x, 2)
    torch.einsum("ij,jk->ik", x, torch.ones(4, 2))
    x.sum([0, 1])
    x[:, torch.tensor([0, 2])]
    x[torch.tensor([True, False])] = 2.0


def views(torch: Any) -> None:
    x = torch.arange(12, dtype=torch.int16).reshape(3, 4)
    x[1:, 2:].t().contiguous()
    x.expand(2, 3, 4).sum()
    x.to(torch.complex64).conj().resolve_conj()


def nothing_in(torch: Any) -> None:
    torch.ones(0, 3).sum()
    torch.tensor(3.0) * 2
    torch.empty(3, device="meta").add(1)


PROGRAMS = [training, scalars, lists, views, nothing_in]


def ops(trace: Any) -> list[Any]:
    """Ops by start."""
    nodes = [node for node in trace["nodes"] if not node["name"].startswith("[pytorch|profiler|")]
    return sorted(nodes, key=lambda node: node["id"])


def attributes(node: Any) -> dict[str, Any]:
    return {attr["name"]: attr["value"] for attr in node["attrs"]}


def is_tensor(kind: str) -> bool:
    return kind.startswith("Tensor(")


def tensors(values: list[Any], types: list[str]) -> list[list[Any]]:
    """All tensors among these values, in order."""
    found = []
    for value, kind in zip(values, types, strict=True):
        if is_tensor(kind):
            found.append(value)
        elif kind.startswith("GenericList[Tensor("):
            found += value
    return found


def without_ids(values: list[Any], types: list[str]) -> list[Any]:
    """The values, each tensor without its id and its storage's id."""
    plain = []
    for value, kind in zip(values, types, strict=True):
        if is_tensor(kind):
            plain.append(value[2:])
        elif kind.startswith("GenericList[Tensor("):
            plain.append([member[2:] for member in value])
        else:
            plain.append(rounded(value))
    return plain


def rounded(value: Any) -> Any:
    """Torch writes six digits."""
    if isinstance(value, list):
        return [rounded(member) for member in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def renumbered(ids: list[int]) -> list[int]:
    """Numbers by first occurrence, so that only equality counts."""
    known: dict[int, int] = {}
    return [known.setdefault(number, len(known)) for number in ids]


@pytest.mark.parametrize("program", PROGRAMS)
def test_nodes_match_torchs(torch: Any, tmp_path: Path, program: Callable[[Any], None]) -> None:
    program(torch)
    our_trace, their_trace = traced_by_both(torch, program, tmp_path)
    ours, theirs = ops(our_trace), ops(their_trace)
    assert [node["name"] for node in ours] == [node["name"] for node in theirs]
    assert len(ours) > 5
    numbers: dict[int, int] = {}
    for our, their in zip(ours, theirs, strict=True):
        numbers[their["id"]] = our["id"]
        assert our.keys() == their.keys()
        for side in ("inputs", "outputs"):
            for field in ("shapes", "types", "strides"):
                assert our[side][field] == their[side][field], our["name"]
            types = our[side]["types"]
            assert without_ids(our[side]["values"], types) == without_ids(their[side]["values"], types)
        for place in (0, 1):  # tensors and storages
            pair = [
                renumbered(
                    [
                        tensor[place]
                        for side in ("inputs", "outputs")
                        for tensor in tensors(node[side]["values"], node[side]["types"])
                    ]
                )
                for node in (our, their)
            ]
            assert pair[0] == pair[1], our["name"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_attributes_match_torchs(torch: Any, tmp_path: Path, program: Callable[[Any], None]) -> None:
    program(torch)
    our_trace, their_trace = traced_by_both(torch, program, tmp_path)
    nodes = {node["id"]: node for node in our_trace["nodes"]}
    numbers = {their["id"]: our["id"] for our, their in zip(ops(our_trace), ops(their_trace), strict=True)}
    for our, their in zip(ops(our_trace), ops(their_trace), strict=True):
        ours, theirs = attributes(our), attributes(their)
        new = {"tensor_range"} - theirs.keys()  # since torch 2.7
        assert [(a["name"], a["type"]) for a in our["attrs"] if a["name"] not in new] == [
            (a["name"], a["type"]) for a in their["attrs"]
        ]
        ours = {name: value for name, value in ours.items() if name not in new}
        theirs["fw_parent"] = numbers.get(theirs["fw_parent"], theirs["fw_parent"] and -1)
        if ours["fw_parent"] in nodes and nodes[ours["fw_parent"]]["name"].endswith("|thread]"):
            ours["fw_parent"] = -1
        assert ours | {"rf_id": None} == theirs | {"rf_id": None}, our["name"]
        parent = numbers.get(their["ctrl_deps"])
        if parent is None:
            assert nodes[our["ctrl_deps"]]["name"] == "[pytorch|profiler|execution_trace|thread]"
        else:
            assert our["ctrl_deps"] == parent
    started = [attributes(node)["rf_id"] for node in ops(our_trace)]
    assert started == sorted(started)


LAUNCHED = {"kernel_file": "/a/folder/kernel.py", "grid": "grid(8,)", "stream": 3, "num_warps": 4}


@pytest.mark.parametrize("backend", ["triton", "other", None])
def test_launched_kernels_are_named(torch: Any, tmp_path: Path, backend: str | None) -> None:
    """Torch gives the stream no strides, though all other inputs have an entry there."""

    def program(torch: Any) -> None:
        named = LAUNCHED | ({} if backend is None else {"kernel_backend": backend})
        with torch._C._profiler._RecordFunctionFast("launched", [torch.ones(2, 3), 6], named):
            pass

    (our,), (their,) = (
        [node for node in ops(trace) if node["name"] == "launched"]
        for trace in traced_by_both(torch, program, tmp_path)
    )
    ours, theirs = attributes(our), attributes(their)
    if "tensor_range" not in theirs:
        pytest.skip(f"torch {torch.__version__} notes other inputs of a kernel than its successors")
    for name in ("kernel_backend", "kernel_file", "tensor_range", "op_schema", "scope"):
        assert ours[name] == theirs[name], name
    assert ours["kernel_file"] == ("kernel.py" if backend == "triton" else "")
    for field in ("types", "shapes"):
        assert our["inputs"][field] == their["inputs"][field]
    types = our["inputs"]["types"]
    assert without_ids(our["inputs"]["values"], types) == without_ids(their["inputs"]["values"], types)
    assert our["inputs"]["values"][2:] == ([3] if backend == "triton" else [])
    assert our["inputs"]["strides"] == their["inputs"]["strides"] + [[] for _ in types[2:]]


def test_header_matches_torchs(torch: Any, tmp_path: Path) -> None:
    ours, theirs = traced_by_both(torch, scalars, tmp_path)
    assert ours.keys() == theirs.keys()
    for key in ("schema", "pid"):
        assert ours[key] == theirs[key]
    assert ours["start_ts"] <= theirs["finish_ts"]
    assert theirs["start_ts"] <= ours["finish_ts"]
    frames = [
        [
            (node["name"], node["ctrl_deps"], attributes(node)["tid"], attributes(node)["scope"])
            for node in sorted(trace["nodes"], key=lambda node: node["id"])
            if node["name"].startswith("[pytorch|profiler|")
        ]
        for trace in (ours, theirs)
    ]
    assert frames[0] == frames[1]


def test_torchs_observer_can_be_given_to_our_profiler(torch: Any, tmp_path: Path) -> None:
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "theirs.json"))
    with profile(execution_trace_observer=observer):
        torch.ones(2).add(1)
    trace = json.loads((tmp_path / "theirs.json").read_bytes())
    names = [node["name"] for node in ops(trace)]
    assert names[:4] == ["aten::ones", "aten::empty", "aten::fill_", "aten::add"]
