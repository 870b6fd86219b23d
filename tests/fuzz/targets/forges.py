"""A trusted job: what the code of a pull request uploaded, judged and commented on, against a GitHub of our own."""

from __future__ import annotations

import functools
import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from artifacts import artifact_of
from fuzz.target import CORPORA, Target
from github_api import HEAD, MERGED_AT, GitHubApi, workflow_run_event

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.compare.sessions import Policy
from pytest_opprof.errors import DocumentError
from pytest_opprof.forge.commenting import Wish, comment_from_event
from pytest_opprof.forge.surroundings import GitHubJob
from pytest_opprof.forge.trusted import Baselines
from pytest_opprof.results.files import run_from_bytes
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit

_NOW: Final = datetime(2026, 1, 3, tzinfo=UTC)
_RUN: Final = 90
# GitHub takes no longer comment.
_LONGEST: Final = 65_536
_MOST_SECONDS: Final = 5.0
_MARKER: Final = "<!-- opprof:"


@functools.cache
def _api() -> GitHubApi:
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
    return GitHubApi()


def _baselines(checkout: Path) -> Baselines:
    """Those of the default branch: the run of the corpus, saved at the commit that the pull request began from."""
    store = open_store("dir:.opprof", root=checkout)
    if not checkout.exists():
        checkout.mkdir()
        run = run_from_bytes((CORPORA / "upload" / "full.json").read_bytes(), where="full.json")
        store.save("main", replace(run, commit=Commit(id=MERGED_AT, dirty=False)), collected=Collected())
    return Baselines(store=store, name=None, root=checkout, policy=Policy())


def _judge(data: bytes, folder: Path) -> None:
    """Whatever was uploaded, the job ends with one comment of ours, soon."""
    api, event, summary = _api(), folder / "event.json", folder / "summary.md"
    baselines = _baselines(folder / "checkout")
    event.write_text(json.dumps(workflow_run_event()), encoding="utf-8")
    summary.unlink(missing_ok=True)
    for known in (api.comments, api.artifacts, api.zips, api.server.asked):
        known.clear()
    api.add(api.writer, "an older comment of another job")
    api.upload(artifact_of(data), run=_RUN)
    job = GitHubJob(
        api_url=api.server.url, token=HEAD, event=event, run=1, attempt=1, page=None, summary=summary
    )
    before = time.process_time()
    try:
        done = comment_from_event(job, Wish(), baselines=baselines, output=folder / "out.json", now=_NOW)
    except Exception as error:
        raise AssertionError(f"the job does not hold: {type(error).__name__}: {error}") from error
    took = time.process_time() - before
    assert took < _MOST_SECONDS, f"the job does not hold: it took {took:.1f} s"
    assert "cannot be compared (" not in done.told, f"the job does not hold: {done.told}"
    assert len(api.bodies) <= 2
    for body in (*api.bodies[1:], summary.read_text(encoding="utf-8")):
        assert len(body) < _LONGEST
        assert body.count(_MARKER) == body.startswith(_MARKER)
    assert all(HEAD in body.partition("\n")[0] for body in api.bodies[1:])
    if done.exit_code:
        raise DocumentError(done.told)


TARGETS: Final = (
    Target(
        name="upload",
        read=_judge,
        words=("aten::mul", "aten::clone", "ops.count", "<= 3", "<script>", "-->", "@all", "](http://x)"),
    ),
)
