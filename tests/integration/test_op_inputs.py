"""Inputs of torch's ops: sizes, strides and types, if requested."""

from typing import Any

import pytest
from support.programs.windows import events_of, ops_window

from pytest_opprof import record_function

pytestmark = pytest.mark.usefixtures("torch_collector")


def test_inputs_are_there_when_asked_for(torch: Any) -> None:
    left, right = torch.ones(2, 3), torch.ones(3, 5)
    with ops_window(record_shapes=True) as window, record_function("range"):
        left @ right
    inputs = window.recording.inputs(events_of(window.recording, "aten::mm")[0])
    assert inputs is not None
    assert inputs.shapes == [[2, 3], [3, 5]]
    assert inputs.strides == [[3, 1], [5, 1]]
    assert inputs.dtypes == ["float", "float"]
    assert window.recording.inputs(events_of(window.recording, "range")[0]) is None


def test_inputs_are_not_recorded_by_default(torch: Any) -> None:
    with ops_window() as window:
        torch.ones(2, requires_grad=True).sum().backward()
    recording = window.recording
    assert [recording.inputs(event) for event in range(len(recording))] == [None] * len(recording)


def test_rows_can_be_split_by_shape(torch: Any) -> None:
    small, large = torch.ones(2, 2), torch.ones(3, 3)
    sparse, sparse_large = small.to_sparse(), large.to_sparse()
    with ops_window(record_shapes=True) as window:
        for tensor in (small, large, small, sparse, sparse_large, sparse):
            tensor.sin()
    rows = [row for row in window.recording.groups(by_inputs=True) if row.name == "aten::sin"]
    # A sparse tensor of a size is the same row as a dense one: only the sizes count.
    assert [row.count for row in rows if row.count > 1][:2] == [4, 2]
    assert sum(row.count for row in window.recording.groups() if row.name == "aten::sin") >= 6


def test_complex_numbers_are_left_out(torch: Any) -> None:
    with ops_window(record_shapes=True) as window:
        torch.full((2,), 1 + 2j)
    inputs = window.recording.inputs(0)
    assert inputs is not None
    assert (inputs.dtypes[:2], inputs.concrete[:2]) == (["ScalarList", ""], [[2], None])


def test_symbolic_numbers_are_left_out(torch: Any) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    trace = make_fx(lambda x: x.view(x.shape[0], 1), tracing_mode="symbolic")
    with ops_window(record_shapes=True) as window:
        trace(torch.ones(4))
    recording = window.recording
    views = [recording.inputs(event) for event in events_of(recording, "aten::view")]
    told = [inputs for inputs in views if inputs is not None]
    assert told
    assert [[], []] in [inputs.shapes for inputs in told]
    assert [None, None] in [inputs.concrete for inputs in told]


def test_more_inputs_than_fit_are_cut(torch: Any) -> None:
    tensors = [torch.ones(1, 1, 1, 1) for _ in range(400)]
    with ops_window(record_shapes=True) as window:
        torch.cat(tensors)
    inputs = window.recording.inputs(events_of(window.recording, "aten::cat")[0])
    assert inputs is not None
    assert inputs.dtypes == ["TensorList"]
    assert 50 < len(inputs.shapes[0]) < 400
    assert inputs.shapes[0][-1] == [1, 1, 1, 1]
