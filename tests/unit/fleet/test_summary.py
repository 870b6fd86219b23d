"""A job's summary: whom it judges, and what it says of others."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.kineto.rank_traces import write_job

from pytest_opprof.fleet.ingest import ingest
from pytest_opprof.fleet.summary import summarize
from pytest_opprof.fleet.tables import windows_of
from pytest_opprof.report.fleet import fleet_lines

RANKS = 16


def test_ranks_too_few_to_judge_have_no_verdict(tmp_path: Path) -> None:
    """A job of few ranks, and a large one of which few take part in collectives."""
    write_job(tmp_path / "few", ranks=4, late_us={3: 2000})
    for path in write_job(tmp_path / "group", ranks=RANKS).iterdir():
        trace = json.loads(path.read_text())
        if trace["distributedInfo"]["rank"] >= 4:
            trace["traceEvents"] = [event for event in trace["traceEvents"] if "nccl" not in event["name"]]
        for event in trace["traceEvents"]:
            event.get("args", {}).update({"Group size": 4, "Process Group Ranks": "[0, 1, 2, 3]"})
        path.write_text(json.dumps(trace))
    write_job(tmp_path / "whole", ranks=RANKS)
    tables = str(tmp_path / "tables")
    for job, told in {
        "few": "no stragglers are named among fewer than 8 ranks",
        "group": "no stragglers are named among fewer than 8 ranks",
        "whole": "no stragglers",
    }.items():
        with ThreadPoolExecutor(2) as executor:
            ingest(str(tmp_path / job), tables, job=job, executor=executor)
        summary = summarize(windows_of(tables, job)[-1])
        lines = [str(line) for line in fleet_lines(summary, rows=0, width=100)]
        assert [line for line in lines if "stragglers" in line or "INCONCLUSIVE" in line] == [told], job
