"""A metric is an entry of one table: what adding one takes, and what follows from it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from opprof_docs.contracts import SCHEMAS, with_metrics

# What a contributor writes for an op metric and two totals: entries in metrics/host.py, the collector's
# columns (`native/src`, here made groups), and who measures the total that no column has (`Cycle.totals`).
# The rest follows, as users see it.
PROGRAM = """
import importlib, json, sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_opprof import metrics
from pytest_opprof.metrics import host, paths, registry
from pytest_opprof.metrics.metric import ColumnSum, Source, of_op, total
from pytest_opprof.units import Unit

host.HOST_METRICS += (of_op("weight", "weight", Unit.BYTES, Source.OPS, column="weight"),)
host.HOST_COUNTS += (
    total("weight.total", "all weight", Unit.BYTES, Source.OPS, summed=ColumnSum(column="own_weight")),
    total("python.lines", "lines", Unit.COUNT, Source.RANGES),
)

for module in (registry, paths, metrics):  # as if the file had said so from the start
    importlib.reload(module)

from support.documents.strategies import simple_run
from support.kineto.made_groups import EMPTY, cycle, op

from pytest_opprof.baselines.counts import reviewable
from pytest_opprof.compare.document import comparison_to_document
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.history.record import record_of
from pytest_opprof.report.op_table import op_table
from pytest_opprof.results.build import with_measurement
from pytest_opprof.results.files import read_run, write_run


def run(weight):
    mul = op("aten::mul", 1, 1, each_step={"weight": (weight, weight), "own_weight": (weight, weight)})
    measured = replace(cycle(mul), totals={"python.lines": [7, 7]})
    test = replace(with_measurement(EMPTY, [measured]), gates={"aten::mul.weight": "exact"}, processes=2)
    return simple_run(test, name="main")


path = Path(sys.argv[1]) / "run.json"
write_run(path, run(64))
found = read_run(path)
compared = compare_runs(found, run(96), created=datetime(2026, 1, 1, tzinfo=UTC), opprof_version="1")
(test,) = comparison_to_document(compared)["tests"]
(definition,) = (definition for definition, _ in record_of(found, committed=None).tests)
print(json.dumps({
    "file": json.loads(path.read_text())["tests"][0],
    "table": op_table(found.tests[0], columns=["weight"], sort_by="weight"),
    "changes": {f"{change['op']} {change['metric']}": change["verdict"] for change in test["changes"]},
    "history": json.loads(definition.text),
    "counts": json.loads(reviewable(found, name="main"))["tests"][0],
}))
"""


def told(folder: Path) -> Any:
    tests = Path(__file__).parents[1]
    program = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(tests)!r})\n{PROGRAM}",
        str(folder),
    ]
    result = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(result.stdout)


def test_new_metric_needs_an_entry_and_a_measurement(tmp_path: Path) -> None:
    found = told(tmp_path)
    assert found["file"]["ops"][0]["metrics"]["weight"] == 64
    assert found["file"]["totals"]["weight.total"] == 64
    assert found["file"]["totals"]["python.lines"] == 7
    title, _, line, *_ = found["table"][1:]
    assert (title.split(), line.split()) == (["Name", "Weight"], ["aten::mul", "128", "B"])
    assert found["changes"]["aten::mul weight"] == found["changes"]["None weight.total"] == "regressed"
    assert found["history"]["ops"]["aten::mul"]["weight"] == 64
    assert found["history"]["totals"]["weight.total"] == 64
    assert found["counts"]["ops"][0]["metrics"]["weight"] == 64
    assert found["counts"]["totals"]["python.lines"] == 7


def test_schema_matches_the_table() -> None:
    text = (SCHEMAS / "run.schema.json").read_text(encoding="utf-8")
    assert with_metrics(text) == text, "run `make reference`"
