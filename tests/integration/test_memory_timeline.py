"""The memory of tensors over time, by their purpose."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import ProfilerActivity, profile
from pytest_opprof.analysis.memory_categories import Category
from pytest_opprof.analysis.memory_timeline import Action, MemoryTimeline
from pytest_opprof.errors import UsageError

pytestmark = pytest.mark.usefixtures("torch")

FLAGS = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def recorded(work: Callable[[], object], **flags: bool) -> profile:
    wanted: dict[str, Any] = FLAGS | flags
    with profile(activities=[ProfilerActivity.CPU], **wanted) as prof:
        work()
    return prof


def timeline_of(prof: profile) -> MemoryTimeline:
    return prof.cycles[-1].memory_timeline()


@pytest.mark.parametrize("flag", FLAGS)
def test_missing_option_is_named(flag: str, tmp_path: Path) -> None:
    prof = recorded(lambda: None, **{flag: False})
    with pytest.raises(ValueError, match=f"^{flag}=True required for memory profiling"):
        prof.export_memory_timeline(tmp_path / "timeline.json")
    assert not list(tmp_path.iterdir())


def test_storage_lives_from_allocation_to_free(torch: Any) -> None:
    def work() -> None:
        block = torch.empty(256)
        block.fill_(1)
        del block

    moments = timeline_of(recorded(work)).moments("cpu")
    assert [(moment.action, moment.version[1], moment.nbytes) for moment in moments] == [
        (Action.CREATE, 0, 1024),
        (Action.INCREMENT_VERSION, 0, 1024),
        (Action.DESTROY, 1, 1024),
    ]
    assert [moment.time_ns for moment in moments] == sorted(moment.time_ns for moment in moments)


def test_reused_address_is_two_storages(torch: Any) -> None:
    def work() -> None:
        for _ in range(2):
            block = torch.empty(256)
            del block

    storages = timeline_of(recorded(work)).flow.storages
    assert [storage.nbytes for storage in storages] == [1024, 1024]
    assert all(storage.given_back_ns is not None for storage in storages)


def test_earlier_storage_has_its_tensors_bytes(torch: Any) -> None:
    old = torch.ones(4, 8)[:, ::2]
    timeline = timeline_of(recorded(lambda: old.add_(1)))
    moment = next(moment for moment in timeline.moments("cpu") if moment.action is Action.PREEXISTING)
    assert moment.time_ns == -1
    assert moment.nbytes == 4 * 8 * 4


def test_a_step_has_all_categories(torch: Any) -> None:
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        batch = torch.randn(8, 16)
        optimizer.zero_grad()
        model(batch).relu().sum().backward()
        optimizer.step()

    step()
    timeline = timeline_of(recorded(step))
    found = {category for *_, category in timeline.changes("cpu")}
    assert found >= {
        Category.PARAMETER,
        Category.OPTIMIZER_STATE,
        Category.INPUT,
        Category.ACTIVATION,
        Category.GRADIENT,
        Category.AUTOGRAD_DETAIL,
    }
    for parameter in model.parameters():
        storage = timeline.flow.at_end((0, -1, parameter.untyped_storage().data_ptr()))
        assert storage is not None
        assert timeline.categories.of((storage, 0)) is Category.PARAMETER


def test_files_match_torchs_format(torch: Any, tmp_path: Path) -> None:
    ones = torch.ones(64)
    prof = recorded(lambda: (ones + ones) * ones)
    for name in ("plain.json", "packed.json.gz", "all.raw.json.gz", "plot.html"):
        prof.export_memory_timeline(tmp_path / name, device="cpu")
    times, sizes = json.loads((tmp_path / "plain.json").read_text())
    assert json.loads(gzip.decompress((tmp_path / "packed.json.gz").read_bytes())) == [times, sizes]
    assert len(times) == len(sizes)
    assert times == sorted(times)
    assert {len(row) for row in sizes} == {1 + len(Category)}
    assert all(row[0] == 0 and min(row) >= 0 for row in sizes)
    raw = json.loads(gzip.decompress((tmp_path / "all.raw.json.gz").read_bytes()))
    assert sum(nbytes for _, _, nbytes, _ in raw) == sum(sizes[-1])
    page = (tmp_path / "plot.html").read_text()
    assert page.count("<polygon") == len(Category)
    assert "Memory of cpu" in page
    assert page.endswith("</html>\n")


def test_unknown_devices_are_refused(tmp_path: Path) -> None:
    prof = recorded(lambda: None)
    prof.export_memory_timeline(tmp_path / "timeline.json", device="cuda:1")
    assert json.loads((tmp_path / "timeline.json").read_text()) == [[], []]
    prof.export_memory_timeline(tmp_path / "plot.html", device="cuda:1")
    with pytest.raises(UsageError, match="unknown device 'tpu'"):
        prof.export_memory_timeline(tmp_path / "timeline.json", device="tpu")


def test_inputs_identify_their_tensors(torch: Any) -> None:
    first, second = torch.ones(4), torch.ones(4)
    view = first[1:]
    sparse = torch.ones(2, 2).to_sparse()

    def work() -> None:
        torch.add(first, view.new_ones(4))
        torch.cat([second, view])
        sparse.neg()

    recording = recorded(work).cycles[0].recording
    rows = {recording.name(row): row for row in range(len(recording))}
    (added, *_), (joined, _) = (recording.identities(rows[name]) or [] for name in ("aten::add", "aten::cat"))
    (one,) = added
    assert one is not None
    assert one.storage == first.untyped_storage().data_ptr()
    storages = [tensor.storage for tensor in joined if tensor is not None]
    assert storages == [second.untyped_storage().data_ptr(), first.untyped_storage().data_ptr()]
    assert joined[1] is not None
    assert joined[1].tensor != one.tensor
    assert recording.identities(rows["aten::neg"]) == [[None]]


def test_unknown_storages_do_not_affect_others(torch: Any) -> None:
    """Memory that another window frees, and tensors without a known storage."""
    held: list[Any] = []
    recorded(lambda: held.append(torch.ones(128)))

    def work() -> None:
        held.clear()
        torch.ones(3).to_sparse().to_dense()

    timeline = timeline_of(recorded(work))
    assert all(moment.nbytes >= 0 for moment in timeline.moments("cpu"))
    _, sizes = timeline.coalesced("cpu")
    assert min(min(row) for row in sizes) >= 0
