"""The pages of jobs: names of a stranger's file do no harm."""

import re

import pytest

from pytest_opprof.report.html.fleet import fleet_page
from pytest_opprof.results.fleet import (
    Fleet,
    FleetDifference,
    FleetSummary,
    OpChange,
    RankSummary,
    Spread,
    Straggler,
)

HOSTILE = "\u202ebold\ud800\x1b[31m<b>"
SUMMARY = FleetSummary(
    job=HOSTILE, window="0", world_size=1, steps=(4, 5), collectives=9, clock_skew_ns=1,
    ranks=(RankSummary(rank=0, host=HOSTILE),), stragglers=(Straggler(rank=1, lateness_ns=9, share_ppm=90, q_ppm=0, arises=HOSTILE),), problems=(HOSTILE,),
    notes=(HOSTILE,),
)  # fmt: skip
DIFFERENCE = FleetDifference(
    base=HOSTILE, head=HOSTILE, ranks=2, windows=(1, 4), same=5, problems=(HOSTILE,),
    ops=(
        OpChange(name=HOSTILE, on_device=False, base=(2, 2), head=(2, 4), base_ns=Spread(), head_ns=Spread(),
                 ranks=1, reason=HOSTILE),
    ),
)  # fmt: skip


@pytest.mark.parametrize("found", [SUMMARY, DIFFERENCE], ids=["one job", "two jobs"])
def test_hostile_names_are_escapes(found: Fleet) -> None:
    page = fleet_page(found)
    assert re.findall("[\u202e\x1b\ud800]|<b>", page) == []
    assert r"<h1>\u202ebold\ud800\x1b[31m&lt;b&gt;" in page
