"""The job that may comment: what a stranger's pull request uploads, from GitHub's event to the written comment.

All of it is the real code over GitHub's API on loopback: the artifact is downloaded, compared with a baseline of
a store, rendered and written as a comment. An input is a run, a zip, or JSON of `run`, GitHub's `event` and the
`comments` of others, in which `grow` repeats parts of the run, for what only size brings out.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fuzz.target import CORPORA, Target, bounded, put
from fuzz.targets.documents import show
from support.forges.artifacts import artifact_of
from support.forges.github_api import HEAD, HUMAN, MERGED_AT, GitHubApi, workflow_run_event
from support.html.rendered import comments, pages

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.compare.sessions import Policy
from pytest_opprof.compare.timing.document import read_judged
from pytest_opprof.errors import DocumentError, ForgeError, OpprofError, UsageError
from pytest_opprof.forge.ci_environment import GitHubJob
from pytest_opprof.forge.commenting import Done, Wish, comment_from_event
from pytest_opprof.forge.fork_verdict import Baselines
from pytest_opprof.results.document import run_from_document
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit
from pytest_opprof.results.schema import Contract, upgraded

_NOW: Final = datetime(2026, 1, 3, tzinfo=UTC)
_ZIP: Final = b"PK"
_RUN: Final = 90
# GitHub's maximum lengths of a comment and of a job's summary.
_LONGEST_COMMENT: Final = 65_536
_LONGEST_SUMMARY: Final = 1_024 * 1_024
# An ordinary input takes a tenth of this, with each line of the package traced.
_MOST_SECONDS: Final = 10.0
_MOST_MEBIBYTES: Final = 256
# How many rows a run may grow to, as many as a tree may have, and how often a part is repeated.
_MOST_ROWS: Final = 2_000
_MOST_TIMES: Final = 100
# Baselines: as it is, with many ops in each test, with many tests.
_BASES: Final[Mapping[str, Mapping[str, int]]] = {
    "main": {},
    "wide": {"ops": 24, "nodes": 24},
    "long": {"tests": 48},
}
_TEXTS: Final = (
    *("aten::clone", "aten::linear", "ops.count", "kernels", "device", "cpu_memory", "views", "flops"),
    *("sum", "min", "max", "places", "source", "parent_op", "unstable", "limits", "gates", "exact", "off"),
    *("inconclusive", "not-run", "range", "call", "memcpy", "tests/test_a.py::test_x", "@org/team"),
    *("grow", "ops", "nodes", "tests", "base", "wide", "long", "<!-- opprof:sticky v1 key="),
    *("<script>", "-->", "](http://x)"),
)


def _times(grow: Any, name: str) -> int:
    value = grow.get(name, 1) if isinstance(grow, dict) else 1
    return min(max(value, 1), _MOST_TIMES) if isinstance(value, int) else 1


def _repeated(part: Any, times: int, key: str) -> Any:
    """A list of objects repeated, each with its own name; anything else unchanged."""
    if not isinstance(part, list) or not all(isinstance(each, dict) for each in part):
        return part
    times = max(min(times, _MOST_ROWS // max(len(part), 1)), 1)
    copies = [part]
    for number in range(1, times):
        offset = number * len(part)
        copies.append([_renamed(each, key, number=number, offset=offset) for each in part])
    return [each for copy in copies for each in copy]


def _renamed(each: dict[str, Any], key: str, *, number: int, offset: int) -> dict[str, Any]:
    other = {**each, key: f"{each[key]}#{number}"} if isinstance(each.get(key), str) else dict(each)
    parent = each.get("parent")
    if isinstance(parent, int) and parent >= 0:
        other["parent"] = parent + offset
    return other


def grown(run: Any, grow: Any) -> Any:
    """A run with some parts repeated, up to a maximum number of rows."""
    if not isinstance(run, dict) or not isinstance(run.get("tests"), list):
        return run
    rows, tests = 0, []
    for test in _repeated(run["tests"], _times(grow, "tests"), "node_id"):
        larger = test
        if isinstance(test, dict) and rows < _MOST_ROWS:
            larger = {
                **test,
                "ops": _repeated(test.get("ops"), _times(grow, "ops"), "name"),
                "tree": _repeated(test.get("tree"), _times(grow, "nodes"), "name"),
            }
            rows += sum(len(larger[part]) for part in ("ops", "tree") if isinstance(larger[part], list))
        tests.append(larger)
    return {**run, "tests": tests}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A job's input: GitHub's event, the upload, others' comments, the baseline's name."""

    upload: bytes
    event: Any = field(default_factory=workflow_run_event)
    comments: Sequence[str] = ()
    base: str = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """GitHub with one pull request, and the folder that the job runs in."""

    api: GitHubApi
    folder: Path

    @property
    def written(self) -> list[str]:
        """The comments of the job, which has its own author."""
        login, _ = self.api.writer
        return [each["body"] for each in self.api.comments if each["user"]["login"] == login]

    def ask(self, given: _Given) -> None:
        """Set up this input, and forget earlier ones."""
        api = self.api
        for past in (api.comments, api.artifacts, api.zips, api.server.asked):
            past.clear()
        api.pulls[0]["base"]["ref"] = given.base
        for body in given.comments:
            api.add(HUMAN, body)
        api.upload(given.upload, run=_RUN)
        put(self.folder, "event.json", json.dumps(given.event).encode())
        for name in ("summary.md", "comparison.json"):
            (self.folder / name).unlink(missing_ok=True)

    def comment(self, base: str) -> Done:
        """Run the job's step."""
        job = GitHubJob(
            api_url=self.api.server.url,
            token="secret",  # noqa: S106  # of a server that asks for none
            event=self.folder / "event.json",
            run=1_000,
            attempt=1,
            page="https://github.com/owner/project/actions/runs/1",
            server="https://github.com",
            summary=self.folder / "summary.md",
            merge=None,
        )
        store = open_store("dir:store", root=self.folder)
        baselines = Baselines(store=store, name=base, root=self.folder, policy=Policy())
        return comment_from_event(
            job, Wish(), baselines=baselines, output=self.folder / "comparison.json", now=_NOW
        )


@functools.cache
def _api() -> GitHubApi:
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
    return GitHubApi()


@functools.cache
def _stage(folder: Path, base: str) -> _Stage:
    document = json.loads((CORPORA / "upload" / "unchanged.json").read_bytes())["run"]
    made = upgraded(grown(document, _BASES[base]), version=Contract.RUN.schema_version)
    run = run_from_document(made, where=base)
    measured = replace(run, commit=Commit(id=MERGED_AT, dirty=False))
    open_store("dir:store", root=folder).save(base, measured, collected=Collected())
    return _Stage(api=_api(), folder=folder)


def _judge(data: bytes, folder: Path) -> None:
    """Whatever was uploaded, the job soon ends with one comment of ours."""
    given = _given(data)
    stage = _stage(folder, given.base)
    stage.ask(given)
    try:
        with bounded(seconds=_MOST_SECONDS, mebibytes=_MOST_MEBIBYTES):
            done = stage.comment(given.base)
            _hold(stage, done)
    except OpprofError as error:
        # GitHub writes the event, and its answers here are valid: nothing else may end the job.
        if isinstance(error, ForgeError | UsageError) and given.event != workflow_run_event():
            raise
        raise AssertionError(f"the job does not hold: {type(error).__name__}: {error}") from error
    if done.exit_code:
        raise DocumentError(done.told)


def _given(data: bytes) -> _Given:
    """An input's parts; a zip, or a run alone, is the upload."""
    if data.startswith(_ZIP):
        return _Given(upload=data)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or "run" not in document:
        return _Given(upload=artifact_of(data))
    grow, comments = document.get("grow"), document.get("comments")
    base = grow.get("base") if isinstance(grow, dict) else None
    return _Given(
        upload=artifact_of(grown(document["run"], grow)),
        event=document.get("event", workflow_run_event()),
        comments=[body for body in comments if isinstance(body, str)] if isinstance(comments, list) else [],
        base=base if isinstance(base, str) and base in _BASES else "main",
    )


def _hold(stage: _Stage, done: Done) -> None:
    """Invariants of the job's end, for any input."""
    # The catch-all for errors of the comparison or the page: no run that the schema accepts may reach it.
    assert "cannot be compared (" not in done.told, f"the job does not hold: {done.told}"
    bodies = stage.written
    summary, comparison = stage.folder / "summary.md", stage.folder / "comparison.json"
    assert len(bodies) <= 1
    for body in bodies:
        assert len(body.encode("utf-8")) <= _LONGEST_COMMENT
        assert HEAD in body.partition("\n")[0]
        assert _hidden(body) == {1}, "a comment has more in it than its marker that no reader sees"
    if summary.exists():
        assert summary.stat().st_size <= _LONGEST_SUMMARY
        assert _hidden(summary.read_text(encoding="utf-8")) == {0}, "a summary hides something"
    if comparison.exists():
        show(read_judged(comparison))


def _hidden(markdown: str) -> set[int]:
    """How many hidden comments each renderer makes of the Markdown; a code span has none."""
    return {len(comments(page)) for page in pages(markdown)}


TARGETS: Final = (Target(name="upload", read=_judge, words=_TEXTS),)
