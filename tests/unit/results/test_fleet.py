"""Fleet files: round trips, and what their schemas refuse."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof.errors import DocumentError
from pytest_opprof.results.fleet import (
    Fleet,
    FleetDifference,
    FleetSummary,
    OpChange,
    RankSummary,
    Spread,
    Straggler,
    fleet_to_document,
    read_fleet,
)
from pytest_opprof.results.schema import Contract, _validator

SUMMARY = FleetSummary(
    job="night", window="0", world_size=2, steps=(4, 5), collectives=9, clock_skew_ns=3,
    ranks=(RankSummary(rank=0, lateness_ns=(-7, None)), RankSummary(rank=1, host="node1")),
    stragglers=(Straggler(rank=1, lateness_ns=7, share_ppm=90_000, q_ppm=1, arises="computing"),),
    problems=("missing: 1 rank: 2",), notes=("a note",),
)  # fmt: skip
DIFFERENCE = FleetDifference(
    base="a", head="b", ranks=2, windows=(1, 4),
    ops=(
        OpChange(name="aten::mul", on_device=False, base=(2, 2), head=(2, 4), base_ns=Spread(p10=1, p50=2, p90=3),
                 head_ns=Spread(), ranks=1, reason="runs more often"),
    ),
    same=5, problems=(),
)  # fmt: skip


def read(tmp_path: Path, document: object) -> Fleet | None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps(document))
    return read_fleet(path)


def document_of(found: Fleet) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(fleet_to_document(found)))
    return document


@pytest.mark.parametrize("found", [SUMMARY, DIFFERENCE], ids=["one job", "two jobs"])
def test_fleet_file_survives_the_round_trip(tmp_path: Path, found: Fleet) -> None:
    assert read(tmp_path, document_of(found) | {"added later": 1}) == found


def test_another_kind_is_left_to_its_reader(tmp_path: Path) -> None:
    assert read(tmp_path, {"kind": Contract.RUN.kind}) is None


@pytest.mark.parametrize(
    ("found", "path", "value", "sentence"),
    [
        (SUMMARY, ("ranks",), [], "ranks: 0 entries are fewer than 1"),
        (SUMMARY, ("ranks", 1, "step_ns"), 1.5, "ranks[1].step_ns: 1.5 is not an integer"),
        (SUMMARY, ("stragglers", 0, "q_ppm"), -1, "stragglers[0].q_ppm: -1 is less than 0"),
        (DIFFERENCE, ("ops", 0, "head"), [1], "ops[0].head: 1 entries are fewer than 2"),
        (DIFFERENCE, ("ops", 0, "base_ns"), {"p10": 1, "p90": 1}, "ops[0].base_ns: 'p50' is missing"),
        (DIFFERENCE, ("schema_version",), 2, "schema version 2 is newer than 1"),
    ],
)
def test_a_broken_file_is_refused(
    tmp_path: Path, found: Fleet, path: tuple[Any, ...], value: Any, sentence: str
) -> None:
    document = document_of(found)
    part: Any = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    contract = Contract.FLEET_SUMMARY if found is SUMMARY else Contract.FLEET_DIFFERENCE
    assert not _validator(contract).is_valid(document)
    with pytest.raises(DocumentError) as raised:
        read(tmp_path, document)
    assert sentence in str(raised.value)


def test_unreported_amounts_of_a_rank_are_zero() -> None:
    rank = RankSummary(rank=3)
    amounts = {
        field.name: getattr(rank, field.name) for field in dataclasses.fields(rank) if field.type == "int"
    }
    assert amounts.pop("rank") == 3
    assert set(amounts.values()) == {0}
