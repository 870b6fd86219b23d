"""The history of many repositories as Parquet tables, at a path or an fsspec address.

Each table has a folder for each repository and month (``runs/repo=encoder/month=2026-03/part-….parquet``):

* ``runs``: a run's commit, name and times, and a column for each field of its fingerprint;
* ``results``: a test's counts (by digest), times and peaks in a run;
* ``definitions`` and ``counts``: the content of these counts, as in the log;
* ``times``: the times of each op, which only run files have;
* ``spans``: the first and the last of successive runs with the same counts in the same environment.

With ``spans``, changes are found without reading every result. A part's runs are written last, so the rows
of an interrupted import belong to no run, and the next import of these runs writes them again.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_opprof.errors import StoreError
from pytest_opprof.extras import needed
from pytest_opprof.history.record import RunRecord, counts_from
from pytest_opprof.metrics import FINGERPRINT_FIELDS, OP_METRICS, Family
from pytest_opprof.parquet_files import arrow_table, write_parquet
from pytest_opprof.results.members import time_to_document
from pytest_opprof.results.run import Run

_TEXT: Final = "string"
_NUMBER: Final = "int64"
COLUMNS: Final = {
    "results": {"node_id": _TEXT, "run": _TEXT, "counts": _TEXT, "measured": "int64[]"},
    "definitions": {
        "node_id": _TEXT,
        "counts": _TEXT,
        "steps": _NUMBER,
        "sources": _TEXT,
        "ops_omitted": "bool",
        "measured": "string[]",
    },
    "counts": {
        "op": _TEXT,
        "metric": _TEXT,
        "counts": _TEXT,
        **dict.fromkeys(("low", "high", "total"), _NUMBER),
    },
    "times": {"op": _TEXT, "metric": _TEXT, "node_id": _TEXT, "run": _TEXT, "low": _NUMBER},
    "spans": {"node_id": _TEXT, "counts": _TEXT, "first": _TEXT, "last": _TEXT},
    "runs": {
        **dict.fromkeys(
            ("run", "at", "created", "committed", "commit", "branch", "name", "environment"), _TEXT
        ),
        "dirty": "bool",
        **dict.fromkeys(FINGERPRINT_FIELDS, _TEXT),
    },
}  # in writing order
# A run's place among its repository's runs, as text that sorts in order.
ORDER: Final = "runs.at || ' ' || runs.created || ' ' || runs.run"
# Runs of a kind follow each other in spans.
KIND: Final = "hash(environment, branch, name)"
SPANS: Final = f"""
WITH told AS (
    SELECT node_id, counts, results.run, {ORDER} AS place,
           {KIND} AS kind
    FROM results JOIN runs USING (run)
), marked AS (
    SELECT *, counts IS DISTINCT FROM lag(counts) OVER in_row AS begins
    FROM told WINDOW in_row AS (PARTITION BY node_id, kind ORDER BY place)
), numbered AS (
    SELECT *, sum(begins::INTEGER) OVER so_far AS row
    FROM marked WINDOW so_far AS (PARTITION BY node_id, kind ORDER BY place ROWS UNBOUNDED PRECEDING)
)
SELECT node_id, any_value(counts) AS counts, arg_min(run, place) AS first, arg_max(run, place) AS last
FROM numbered GROUP BY node_id, kind, row ORDER BY node_id, first
"""  # noqa: S608
_GROUP: Final = 16_384  # rows; a trend reads one test of hundreds
_TIMES_OF_OPS: Final = frozenset(name for name, one in OP_METRICS.items() if one.family is Family.TIME)
NEEDED_BY: Final = "opprof history --tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRun:
    """A run to be added to the tables."""

    record: RunRecord
    times: tuple[tuple[Any, ...], ...] = ()  # rows of the table ``times``; none for a run from a log


def times_of(run: Run, record: RunRecord) -> tuple[tuple[Any, ...], ...]:
    """Rows of the table ``times``: each op's least time of any step, for the tests in the record."""
    told = {json.loads(definition.text)["node_id"] for definition, _ in record.tests}
    sums: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for test in run.tests:
        for row in test.ops if test.node_id in told else ():
            for name, samples in row.metrics.items():
                if not row.background and name in _TIMES_OF_OPS and samples.high:
                    sums[row.name, name, test.node_id, run.run_id] += samples.low
    return tuple((*key, low) for key, low in sorted(sums.items()))


def add_runs(root: str, repo: str, told: Iterable[ToldRun]) -> int:
    """Write the runs that have tests and that the tables lack, one part for each month, and count them."""
    months: defaultdict[str, list[ToldRun]] = defaultdict(list)
    for one in told:
        if one.record.tests:
            months[one.record.head.at.strftime("%Y-%m")].append(one)
    for month, of_month in sorted(months.items()):
        _write(root, f"repo={repo}/month={month}", _tables(of_month))
    return sum(map(len, months.values()))


def run_ids(root: str, repo: str) -> set[str]:
    """The ids of a repository's runs in the tables."""
    files, path = needed("fsspec.core", by=NEEDED_BY).url_to_fs(root)
    found = set[str]()
    try:
        for one in files.glob(f"{path.rstrip('/')}/runs/repo={repo}/month=*/*.parquet"):
            with files.open(one, "rb") as opened:
                read = needed("pyarrow.parquet", by=NEEDED_BY).read_table(opened, columns=["run"])
            found.update(read["run"].to_pylist())
    except (OSError, ValueError) as error:
        raise StoreError(f"{root} cannot be read: {error}") from error
    return found


def compact(root: str) -> tuple[int, int]:
    """Join the parts of each month that has several, and count the months and the joined parts.

    If this is killed before the last part is removed, some runs are there twice: readers count them once, and
    the next call removes the rest.
    """
    files, path = needed("fsspec.core", by=NEEDED_BY).url_to_fs(root)
    path = path.rstrip("/")
    months, joined = sorted(files.glob(f"{path}/runs/repo=*/month=*")), 0
    for month in months:
        place = month.removeprefix(f"{path}/runs/")
        parts = {table: sorted(files.glob(f"{path}/{table}/{place}/*.parquet")) for table in COLUMNS}
        # After an interrupted import or compaction, perhaps only one table has several.
        if max(map(len, parts.values())) > 1:
            _write(root, place, _joined(files, parts), instead_of=parts, files=files)
            joined += len(parts["runs"])
    return len(months), joined


def _tables(told: Sequence[ToldRun]) -> dict[str, Any]:
    rows: dict[str, Any] = {table: [] for table in COLUMNS}
    node_ids: dict[str, str] = {}  # most runs share definitions, so each is read once
    for one in told:
        record = one.record
        rows["runs"].append(_run_row(record))
        rows["times"] += one.times
        for definition, measured in record.tests:
            digest = definition.digest
            if digest not in node_ids:
                counts = counts_from(json.loads(definition.text))
                node_ids[digest] = counts.node_id
                row = (counts.node_id, digest, counts.steps, " ".join(counts.sources), counts.ops_omitted)
                rows["definitions"].append((*row, list(counts.measured)))
                rows["counts"] += (
                    (op, metric, digest, samples.low, samples.high, samples.total)
                    for op, metrics in {"": counts.totals, **counts.ops}.items()  # a total has no op
                    for metric, samples in metrics.items()
                )
            rows["results"].append((node_ids[digest], record.head.run_id, digest, measured))
    tables = {
        table: arrow_table(columns, rows[table]).sort_by([(column, "ascending") for column in _key(columns)])
        for table, columns in COLUMNS.items()
        if table != "spans"
    }
    return tables | {"spans": _spans(tables)}


def _key(columns: dict[str, str]) -> list[str]:
    """The columns that a table is sorted by: the text columns among its first four."""
    return [column for column in list(columns)[:4] if columns[column] == _TEXT]


def _run_row(record: RunRecord) -> tuple[Any, ...]:
    fingerprint = json.loads(record.environment.text)["fingerprint"]
    head, commit = record.head, record.head.commit
    return (
        head.run_id,
        head.at.isoformat(),
        time_to_document(head.created),
        time_to_document(head.committed) if head.committed else None,
        commit.id if commit else None,
        commit.branch if commit else None,
        head.name,
        record.environment.digest,
        bool(commit and commit.dirty),
        *(fingerprint.get(field) for field in FINGERPRINT_FIELDS),
    )


def _spans(tables: dict[str, Any]) -> Any:
    with needed("duckdb", by=NEEDED_BY).connect() as connection:
        for table in ("results", "runs"):
            connection.register(table, tables[table])
        return connection.sql(SPANS).to_arrow_table()


def _joined(files: Any, parts: dict[str, list[str]]) -> dict[str, Any]:
    parquet, pa = needed("pyarrow.parquet", by=NEEDED_BY), needed("pyarrow", by=NEEDED_BY)
    joined = {}
    try:
        with needed("duckdb", by=NEEDED_BY).connect() as connection:
            for table, columns in COLUMNS.items():
                if table != "spans":
                    # A part of another release may lack a column, or have an unknown one.
                    read = [
                        parquet.read_table(path, filesystem=files, partitioning=None) for path in parts[table]
                    ]
                    connection.register("parts", pa.concat_tables(read, promote_options="default"))
                    order = ", ".join(f'"{column}"' for column in _key(columns))
                    text = f"SELECT DISTINCT * FROM parts ORDER BY {order}"  # noqa: S608
                    joined[table] = connection.sql(text).to_arrow_table()
    except (OSError, ValueError) as error:
        raise StoreError(f"a part of {parts['runs'][0]} cannot be read: {error}") from error
    return joined | {"spans": _spans(joined)}


def _write(
    root: str,
    place: str,
    tables: dict[str, Any],
    *,
    instead_of: dict[str, list[str]] | None = None,
    files: Any = None,
) -> None:
    """Write a part of each table (runs last), then remove the parts that it replaces (runs first)."""
    named = hashlib.sha256("\n".join(sorted(tables["runs"]["run"].to_pylist())).encode()).hexdigest()[:16]
    part = f"part-{named}.parquet"
    try:
        for table in COLUMNS:
            write_parquet(f"{root.rstrip('/')}/{table}/{place}/{part}", tables[table], group=_GROUP)
        for table in reversed(COLUMNS):
            for path in (instead_of or {}).get(table, ()):
                if not path.endswith(part):
                    files.rm_file(path)
    except OSError as error:
        raise StoreError(f"{root} cannot be written: {error.strerror or error}") from error
