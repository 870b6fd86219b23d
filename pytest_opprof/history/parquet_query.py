"""Query the history's Parquet tables with DuckDB."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.extras import needed
from pytest_opprof.history.parquet import COLUMNS, KIND, NEEDED_BY, ORDER
from pytest_opprof.history.reader import Results
from pytest_opprof.history.record import Counts, RunHead
from pytest_opprof.history.trend import because
from pytest_opprof.metrics import FINGERPRINT_FIELDS, Family, MetricPath, matches
from pytest_opprof.results.members import gc_paused
from pytest_opprof.results.run import Commit, Environment
from pytest_opprof.results.samples import Samples

# Numbers in text compare as numbers ('2.9' < '2.14'), because each is padded to ten digits.
_BY_NUMBER: Final = r"""
CREATE MACRO by_number(text) AS array_to_string(list_transform(
    regexp_extract_all(text, '[0-9]+|[^0-9]+'),
    lambda each: CASE WHEN each SIMILAR TO '[0-9]+'
        THEN lpad(each, greatest(10, length(each))::INTEGER, '0') ELSE each END
), '')
"""
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'")
_KNOWN: Final = """
CREATE OR REPLACE TABLE known AS WITH told AS (
    SELECT repo, counts, sum(low) AS low, sum(high) AS high, sum(total) AS total
    FROM (SELECT DISTINCT repo, counts, op, low, high, total FROM counts_parts
          WHERE metric = $metric AND op IN (SELECT unnest($ops)))
    GROUP BY ALL
)
SELECT repo, counts, steps, ifnull(low, 0) AS low, ifnull(high, 0) AS high, ifnull(total, 0) AS total
FROM (SELECT DISTINCT repo, counts, steps, sources, ops_omitted FROM definitions_parts)
LEFT JOIN told USING (repo, counts)
WHERE low IS NOT NULL OR (list_contains($listening, sources) AND NOT ops_omitted)
"""
# Spans of different kinds (`parquet.KIND`), such as two branches, may overlap: together they are a stretch.
# If a stretch has one value, and --where does not cut its spans, their ends stand for its results; else each
# result is read.
_STRETCHED: Final = """
CREATE OR REPLACE TABLE stretched AS WITH kinds AS (
    SELECT repo, kind,
           min(place) FILTER (is_wanted) AS first_wanted, max(place) FILTER (is_wanted) AS last_wanted,
           min(place) FILTER (NOT is_wanted) AS first_other, max(place) FILTER (NOT is_wanted) AS last_other
    FROM runs GROUP BY ALL
), spans AS (
    SELECT DISTINCT repo, node_id, counts, first, last, low, high,
           starts.place AS begins, stops.place AS ends,
           ifnull(begins <= last_wanted AND ends >= first_wanted
                  AND begins <= last_other AND ends >= first_other, false) AS is_cut
    FROM spans_parts JOIN known USING (repo, counts)
    JOIN runs AS starts USING (repo) JOIN runs AS stops USING (repo) JOIN kinds USING (repo)
    WHERE starts.run = first AND stops.run = last AND kinds.kind = starts.kind
          AND ($name IS NULL OR starts.name = $name)
    WINDOW of_test AS (PARTITION BY repo, node_id)
    QUALIFY min(low) OVER of_test < max(low) OVER of_test OR min(high) OVER of_test < max(high) OVER of_test
), apart AS (
    SELECT *, ifnull(begins > max(ends) OVER so_far, true) AS is_apart
    FROM spans WINDOW so_far AS (
        PARTITION BY repo, node_id ORDER BY begins, ends ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
), numbered AS (
    SELECT *, count_if(is_apart) OVER (PARTITION BY repo, node_id ORDER BY begins, ends) AS stretch FROM apart
)
SELECT *, bool_or(is_cut) OVER one OR min(low) OVER one < max(low) OVER one
          OR min(high) OVER one < max(high) OVER one AS is_read
FROM numbered WINDOW one AS (PARTITION BY repo, node_id, stretch)
"""
_CHANGES: Final = """
WITH stretches AS (
    SELECT repo, node_id, min(begins) AS begins, max(ends) AS ends
    FROM stretched WHERE is_read GROUP BY repo, node_id, stretch
), ends AS (
    SELECT repo, node_id, counts, unnest([first, last]) AS run FROM stretched WHERE NOT is_read
    UNION
    SELECT results.repo, results.node_id, counts, run
    FROM (
        SELECT * FROM results_parts JOIN runs USING (repo, run) SEMI JOIN stretches USING (repo, node_id)
        WHERE list_contains($months, results_parts.month)
    ) AS results ASOF JOIN stretches
    ON results.repo = stretches.repo AND results.node_id = stretches.node_id AND place >= stretches.begins
    WHERE place <= stretches.ends
), placed AS (
    SELECT *, min(place) FILTER (is_wanted) OVER (PARTITION BY repo, node_id) AS begins
    FROM ends JOIN runs USING (repo, run) JOIN known USING (repo, counts)
    WHERE $name IS NULL OR name = $name
), kept AS (
    SELECT *, max(place) FILTER (place < begins) OVER (PARTITION BY repo, node_id) AS last_before FROM placed
), compared AS (
    SELECT repo, node_id, run, place, steps, low, high, total, lag(run) OVER in_order AS run_before,
           lag(steps) OVER in_order AS steps_before, lag(low) OVER in_order AS low_before,
           lag(high) OVER in_order AS high_before, lag(total) OVER in_order AS total_before
    FROM kept WHERE is_wanted OR place = last_before
    WINDOW in_order AS (PARTITION BY repo, node_id ORDER BY place)
)
SELECT repo, node_id, run_before, steps_before, low_before, high_before, total_before,
       run, steps, low, high, total
FROM compared WHERE run_before IS NOT NULL AND CASE
    WHEN low = high OR low_before = high_before THEN (low, high) != (low_before, high_before)
    ELSE low > high_before OR high < low_before END
ORDER BY place, repo, node_id
"""
_PRINTED: Final = 64  # usually at most the latest runs, this many
_Head: TypeAlias = tuple[RunHead, Environment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a test's metric from one run to the next (`trend.is_change`)."""

    repo: str
    node_id: str
    run: RunHead  # the first run with the new value
    before: Samples
    after: Samples
    because: tuple[str, ...]  # fingerprint fields that the metric depends on and that changed too, in words


class HistoryTables:
    """The history's tables at a path or an fsspec address.

    An SQL condition may select runs; in it numbers in text compare as numbers.
    """

    def __init__(self, root: str, *, where: str | None = None) -> None:
        self._duckdb = needed("duckdb", by=NEEDED_BY)
        self._connection = self._duckdb.connect(config={"preserve_insertion_order": False})
        files, path = needed("fsspec.core", by=NEEDED_BY).url_to_fs(root)
        if not files.glob(f"{path.rstrip('/')}/runs/repo=*/month=*/*.parquet"):
            raise UsageError(
                f"{root} has no runs: take some in with opprof history --tables {root} --import PATH"
            )
        if "file" not in files.protocol:
            self._connection.register_filesystem(files)
            path = files.unstrip_protocol(path)
        self._query(_BY_NUMBER)
        for table in COLUMNS:
            pattern = f"{path.rstrip('/')}/{table}/repo=*/month=*/*.parquet".replace("'", "''")
            # Our releases differ in the fields of a fingerprint, so each file's own columns are read.
            union = str(table == "runs").lower()
            self._query(
                f"CREATE VIEW {table}_parts AS SELECT * FROM read_parquet('{pattern}', "  # noqa: S608
                f"union_by_name={union}, hive_partitioning=true, hive_types_autocast=false)"
            )
        self._query(
            "CREATE TABLE runs AS SELECT * REPLACE (row_number() OVER (ORDER BY place, repo) AS place) FROM "  # noqa: S608
            f"(SELECT DISTINCT ON (repo, run) repo, run, month AS of_month, name, {KIND} AS kind, "
            f"{ORDER} AS place, true AS is_wanted FROM runs_parts AS runs)"
        )
        if where is not None:
            self._want(where)

    def _want(self, where: str) -> None:
        told = _LITERAL.sub(lambda literal: f"by_number({literal[0]})", where)
        described = self._query("DESCRIBE runs_parts")
        columns = [f'"{column}"' for column, kind, *_ in described if kind == "VARCHAR"]
        by_number = ", ".join(f"by_number({column}) AS {column}" for column in columns)
        self._query(
            "UPDATE runs SET is_wanted = (repo, run) IN "  # noqa: S608
            "(SELECT (of_repo, of_run) FROM "
            f"(SELECT repo AS of_repo, run AS of_run, dirty, {by_number} FROM runs_parts) WHERE ({told}\n))",
            told=f"--where {where!r}",
        )
        if not self._query("SELECT 1 FROM runs WHERE is_wanted LIMIT 1"):
            raise UsageError(f"no run has {where}")

    def tests(self) -> list[tuple[str, str]]:
        """The tests of the repositories with selected runs, as pairs of repository and node id."""
        return self._query(
            "SELECT DISTINCT spans.repo, node_id FROM spans_parts AS spans "
            "SEMI JOIN runs ON spans.repo = runs.repo AND first = run "
            "WHERE spans.repo IN (SELECT repo FROM runs WHERE is_wanted) ORDER BY ALL"
        )

    @property
    def runs(self) -> int:
        """The number of selected runs."""
        ((count,),) = self._query("SELECT count(*) FROM runs WHERE is_wanted")
        return int(count)

    @gc_paused()
    def results(self, repo: str, node_id: str, *, name: str | None = None) -> Results:
        """A test's results in the selected runs, oldest commit first."""
        found = self._columns(
            "SELECT DISTINCT ON (place) run, results.counts, results.measured "
            "FROM results_parts AS results JOIN runs USING (repo, run) "
            "WHERE results.repo = ? AND node_id = ? AND is_wanted AND (? IS NULL OR name = ?) ORDER BY place",
            repo, node_id, name, name,
        )  # fmt: skip
        runs, heads = found["run"], dict[tuple[str, str], _Head]()

        def head_of(place: int) -> _Head:
            """Read on demand: with the other latest runs if it is one of them, else with all."""
            key = repo, runs[place].as_py()
            if key not in heads:
                is_late = place >= len(runs) - _PRINTED
                heads.update(self.heads((runs[-_PRINTED:] if is_late else runs).to_pylist()))
            return heads[key]

        digests, known = found["counts"].to_pylist(), self._counts(repo, node_id)
        return Results(head_of, [known[digest] for digest in digests], found["measured"].to_pylist())

    def times(self, repo: str, node_id: str, path: MetricPath) -> dict[str, int]:
        """An op's time by run id, in nanoseconds; of a pattern, the sum of ops that match."""
        found = self._query(
            "SELECT DISTINCT op, run, low FROM times_parts WHERE metric = ? AND repo = ? AND node_id = ?",
            path.metric.name, repo, node_id,
        )  # fmt: skip
        sums: dict[str, int] = {}
        for op, run, low in found:
            if path.op is not None and matches(path.op, op):
                sums[run] = sums.get(run, 0) + low
        return sums

    @gc_paused()
    def changes(self, path: MetricPath, *, name: str | None = None) -> list[Change]:
        """Where an exact metric of any test changed in the selected runs of a name or all, oldest first.

        The first selected run is compared with the last run before it. So if a condition selects a release of
        torch, a change that came with that release is found.
        """
        if path.metric.family is not Family.EXACT:
            raise UsageError(f"{path} differs in every run: name one test to see its trend")
        # A missing op ran 0 times if its source was recorded.
        known = [told for (told,) in self._query("SELECT DISTINCT sources FROM definitions_parts")]
        self._query(
            _KNOWN,
            metric=path.metric.name,
            ops=[""] if path.op is None else self._ops(path.op),
            listening=[told for told in known if path.op is not None and path.metric.answers(told.split())],
        )
        self._query(_STRETCHED, name=name)
        # DuckDB skips the files of other months only if the query names the months.
        months = self._query(
            "SELECT DISTINCT of_month FROM runs "
            "SEMI JOIN stretched ON runs.repo = stretched.repo AND is_read AND place BETWEEN begins AND ends"
        )
        found = self._query(_CHANGES, months=[month for (month,) in months], name=name)
        heads = self.heads({run for row in found for run in (row[2], row[7])})
        return [_change(row, heads, path) for row in found]

    def _ops(self, pattern: str) -> list[str]:
        names = self._query("SELECT DISTINCT op FROM counts_parts WHERE op != ''")
        return [name for (name,) in names if matches(pattern, name)]

    def heads(self, runs: Collection[str]) -> Mapping[tuple[str, str], _Head]:
        """Runs and their environments, by repository and run id."""
        fields = list(FINGERPRINT_FIELDS)
        columns = ", ".join(f'"{field}"' for field in fields)
        found = self._query(
            'SELECT repo, run, created, committed, "commit", dirty, branch, name, environment, '  # noqa: S608
            f"{columns} FROM runs_parts WHERE run IN (SELECT unnest(?))",
            list(runs),
        )
        environments: dict[str, Environment] = {}
        heads = {}
        for repo, run, created, committed, commit, dirty, branch, name, digest, *values in found:
            if digest not in environments:
                told = {
                    field: value for field, value in zip(fields, values, strict=True) if value is not None
                }
                environments[digest] = Environment(fingerprint=told)
            head = RunHead(
                run_id=run,
                created=datetime.fromisoformat(created),
                committed=datetime.fromisoformat(committed) if committed else None,
                commit=Commit(id=commit, dirty=dirty, branch=branch) if commit else None,
                name=name,
            )
            heads[repo, run] = head, environments[digest]
        return heads

    def _counts(self, repo: str, node_id: str) -> dict[str, Counts]:
        defined = self._query(
            "SELECT DISTINCT ON (counts) counts, steps, sources, ops_omitted, measured "
            "FROM definitions_parts WHERE repo = ? AND node_id = ?",
            repo, node_id,
        )  # fmt: skip
        steps_of = {counts: steps for counts, steps, *_ in defined}
        rows = self._query(
            "SELECT DISTINCT counts, op, metric, low, high, total FROM counts_parts "
            "WHERE repo = ? AND counts IN (SELECT unnest(?))",
            repo, list(steps_of),
        )  # fmt: skip
        ops: dict[str, dict[str, dict[str, Samples]]] = {counts: {} for counts in steps_of}
        for counts, op, metric, *values in rows:
            ops[counts].setdefault(op, {})[metric] = _samples(*values, steps=steps_of[counts])
        return {
            counts: Counts(
                node_id=node_id,
                steps=steps,
                sources=tuple(sources.split()),
                totals=ops[counts].pop("", {}),
                ops=ops[counts],
                ops_omitted=omitted,
                measured=tuple(measured),
            )
            for counts, steps, sources, omitted, measured in defined
        }

    def _columns(self, text: str, *values: object) -> dict[str, Any]:
        """An answer's columns as pyarrow arrays, because Python objects of 100,000 rows take long."""
        with self._errors():
            table = self._connection.sql(text, params=list(values)).to_arrow_table()
        return {column: table[column].combine_chunks() for column in table.column_names}

    def _query(self, text: str, *values: object, told: str = "", **named: object) -> list[tuple[Any, ...]]:
        with self._errors(told):
            return list(self._connection.execute(text, named or list(values)).fetchall())

    @contextmanager
    def _errors(self, told: str = "") -> Iterator[None]:
        try:
            yield
        except self._duckdb.IOException as error:
            raise StoreError(f"the tables cannot be read: {error}") from error
        except self._duckdb.Error as error:
            if not told:
                raise StoreError(f"the tables are not ours, or damaged: {error}") from error
            why = str(error).partition("\n")[0]
            hint = "all columns but dirty are text, as in \"torch >= '2.14'\""
            raise UsageError(f"DuckDB refuses {told}: {why} ({hint})") from error


def _change(row: tuple[Any, ...], heads: Mapping[tuple[str, str], _Head], path: MetricPath) -> Change:
    repo, node_id, run_before, steps_before, *before, run, steps, low, high, total = row
    (_, was), (head, now) = heads[repo, run_before], heads[repo, run]
    return Change(
        repo=repo,
        node_id=node_id,
        run=head,
        before=_samples(*before, steps=steps_before),
        after=_samples(low, high, total, steps=steps),
        because=because(was, now, path.metric),
    )


def _samples(low: int, high: int, total: int, *, steps: int) -> Samples:
    return replace(Samples.constant(low, steps=steps), high=high, total=int(total))
