"""The pages of a job of many ranks, and of two jobs, in a browser."""

from dataclasses import replace
from pathlib import Path

from support.html.report_tabs import texts, written

from benchmarks.browser import Browser, Tab
from pytest_opprof.report.html.fleet import fleet_page
from pytest_opprof.results.fleet import (
    FleetDifference,
    FleetSummary,
    OpChange,
    RankSummary,
    Spread,
    Straggler,
)

RANKS = 4096
HOSTILE = "</script><img src=x onerror=alert(1)>"


def large() -> FleetSummary:
    ranks = [
        RankSummary(
            rank=rank, lateness_ns=(9_000_000, None) if rank == 1300 else (rank % 100, 0), step_ns=10**8
        )
        for rank in range(RANKS)
    ]
    late = Straggler(rank=1300, lateness_ns=9_000_000, share_ppm=90_000, q_ppm=0, arises=HOSTILE)
    return FleetSummary(
        job=HOSTILE, window="0", world_size=RANKS, steps=(4, 5), collectives=9, clock_skew_ns=1,
        ranks=tuple(ranks), stragglers=(late,), problems=(),
    )  # fmt: skip


def test_thousands_of_ranks_are_one_small_page(browser: Browser, tmp_path: Path) -> None:
    page = fleet_page(large())
    assert len(page) < 15 << 20
    tab = Tab(browser)
    tab.open(written(tmp_path, page))
    assert texts(tab, "tbody tr:first-child th") == ["1300"]
    assert tab.run("document.querySelector('canvas').height") == RANKS
    red = tab.run(
        "[...document.querySelector('canvas').getContext('2d').getImageData(0, 1300, 1, 1).data].join()"
    )
    assert red == "178,24,43,255"
    tab.click("button")
    assert len(texts(tab, "tbody tr")) == RANKS
    assert texts(tab, "img") == []
    assert tab.complaints == []
    tab.close()


def test_what_no_rank_has_is_left_out(browser: Browser, tmp_path: Path) -> None:
    """Runs have no collectives, so nobody knows who was late. A rank may lack all of its collectives."""
    ranks = tuple(
        RankSummary(rank=rank, lateness_ns=(None, None), step_ns=10**8, peak_bytes=rank << 20)
        for rank in range(3)
    )
    found = FleetSummary(
        job="runs", window="0", world_size=3, steps=(4, 5), collectives=0, clock_skew_ns=0,
        ranks=ranks, stragglers=(), problems=(),
    )  # fmt: skip
    tab = Tab(browser)
    tab.open(written(tmp_path, fleet_page(found)))
    assert texts(tab, "h3") == ["Ranks; means of a step"]
    assert texts(tab, "thead th") == ["rank", "step", "peak"]
    assert texts(tab, "tbody td") == ["100.0 ms", "", "100.0 ms", "1.0 MiB", "100.0 ms", "2.0 MiB"]
    assert texts(tab, "canvas") == []
    known = replace(ranks[2], lateness_ns=(None, 2_000_000))
    tab.open(written(tmp_path, fleet_page(replace(found, ranks=(*ranks[:2], known)))))
    assert texts(tab, "thead th") == ["rank", "late", "step", "peak"]
    assert texts(tab, "tbody tr:first-child :is(th, td)") == ["2", "2.0 ms", "100.0 ms", "2.0 MiB"]
    assert texts(tab, "tbody tr:nth-child(2) :is(th, td)") == ["0", "", "100.0 ms", ""]
    assert len(texts(tab, "canvas")) == 1
    assert tab.complaints == []
    tab.close()


def test_two_jobs_are_a_table_of_ops(browser: Browser, tmp_path: Path) -> None:
    op = OpChange(
        name=HOSTILE, on_device=True, base=(2, 2), head=(2, 4), base_ns=Spread(p10=10**6, p50=2 * 10**6, p90=3 * 10**6),
        head_ns=Spread(), ranks=1, reason="runs more often",
    )  # fmt: skip
    found = FleetDifference(base="a", head="b", ranks=9, windows=(1, 1), ops=(op,), same=0, problems=())
    tab = Tab(browser)
    tab.open(written(tmp_path, fleet_page(found)))
    assert texts(tab, "tbody th") == [f"{HOSTILE} (device)"]
    cells = ["runs more often", "2", "2 to 4", "1", "1.0 ms · 2.0 ms · 3.0 ms", "0 ns · 0 ns · 0 ns"]
    assert texts(tab, "tbody td") == cells
    assert tab.complaints == []
    tab.close()
