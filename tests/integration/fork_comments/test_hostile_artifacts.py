"""Malicious artifacts are refused in one sentence, and fetched only from their storage."""

import json
from dataclasses import replace
from typing import Any

import pytest
from support.documents.strategies import simple_test
from support.forges.artifacts import DOCUMENT, member, zip_of
from support.forges.fork_jobs import REFUSED, RUN, Job, run_of, uploaded
from support.forges.github_api import HEAD
from support.forges.loopback import Asked, Reply
from support.forges.workflow_commands import obeyed

from pytest_opprof.forge.artifact import MAX_ARTIFACT_BYTES
from pytest_opprof.results.document import RUN_SCHEMA_VERSION, run_to_document

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")


@pytest.mark.parametrize("part", ["fork_verdict.compare_runs", "commenting.markdown_comment"])
def test_broken_artifact_replaces_an_older_pass(job: Job, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*args: Any, **kwargs: Any) -> None:
        raise OverflowError("int too large to convert to float")

    job.save(4)
    job.upload(uploaded(4))
    job.comment()
    assert "PASS" in job.body
    job.event(run_number=5)
    monkeypatch.setattr(f"pytest_opprof.forge.{part}", breaks)
    assert job.comment() == REFUSED
    assert "the artifact opprof-run cannot be compared (OverflowError). It was not used" in job.body
    assert "PASS" not in job.body


DATA = json.dumps(uploaded()).encode()
PATHS = {
    "parent": zip_of((f"../../{DOCUMENT}", DATA)),
    "absolute": zip_of((f"/tmp/{DOCUMENT}", DATA)),  # noqa: S108 - where nothing must be written
    "beside": zip_of((DOCUMENT, DATA), ("sitecustomize.py", b"raise SystemExit")),
    "link": zip_of((member(mode=0o120777), b"/etc/passwd")),
}


@pytest.mark.parametrize("name", PATHS)
def test_artifact_cannot_choose_a_path(job: Job, name: str) -> None:
    job.save(4)
    job.api.upload(PATHS[name], run=RUN)
    around = set(job.folder.parent.iterdir()) | {job.folder.parent / "summary.md"}
    assert job.comment() == REFUSED
    assert set(job.folder.parent.iterdir()) == around
    assert job.api.bodies == []
    assert "### opprof: no result" in job.summary


def stored(text: str) -> bytes:
    """An uncompressed artifact with this text, so that only the text is unusual."""
    return zip_of((DOCUMENT, text.encode()), method=0)


WHOLE = json.dumps(uploaded())
HOSTILE = {
    "no zip": b"{}",
    "no JSON": stored("hello"),
    "a comparison": stored(json.dumps({"kind": "opprof-comparison", "schema_version": 1})),
    "not a number": stored(WHOLE.replace('"processes": 2', '"processes": NaN')),
    "infinity": stored(WHOLE.replace('"processes": 2', '"processes": Infinity')),
    "1e999": stored(WHOLE.replace('"processes": 2', '"processes": 1e999')),
    "a number of many digits": stored(WHOLE.replace('"processes": 2', f'"processes": {"9" * 5000}')),
    "key twice": stored(WHOLE.replace('"processes": 2', '"processes": 2, "processes": 3')),
    "nested": stored("[" * 200_000),
    "a million tests": stored(WHOLE.replace('"tests": [', '"tests": [' + "{}," * 1_000_000)),
    "a name of a megabyte": stored(WHOLE.replace("aten::mul", "x" * 1_000_000)),
    "of the future": stored(json.dumps({**uploaded(), "schema_version": RUN_SCHEMA_VERSION + 1})),
    "another encoding": zip_of((DOCUMENT, WHOLE.encode("utf-16"))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_artifact_is_refused_in_one_sentence(job: Job, name: str) -> None:
    job.save(4)
    job.api.upload(HOSTILE[name], run=RUN)
    assert job.comment() == REFUSED
    assert len(job.told.splitlines()) == 2, job.told
    assert "artifact 500 of run 90: " in job.told
    assert job.summary.startswith("### opprof: no result\n\n`artifact 500 of run 90: ")
    assert len(job.summary) < 1_200
    assert job.api.bodies == []


def test_name_of_a_zip_member_is_inert(job: Job) -> None:
    job.save(4)
    job.api.upload(zip_of(("##[error file=README.md;line=1]Rotate keys", DATA)), run=RUN)
    assert job.comment() == REFUSED
    assert "Rotate keys" in job.told + job.problem
    assert obeyed(job.told + job.problem) == []


def test_names_in_an_artifact_are_inert(job: Job) -> None:
    evil = "##[error]x::error::x`</details>@org/team <img src=x> | <!-- opprof:sticky v1 -->\n::set-output name=a::b\x1b[31m"
    job.save(4)
    hostile = simple_test({evil: 3, "aten::mul": 9}, processes=2)
    run = replace(run_of(9, commit=HEAD), tests=(hostile,))
    job.upload(run_to_document(run))
    job.comment("--dry-run")
    lines = job.told.splitlines()
    assert any("set-output" in line for line in lines), "it is shown"
    assert obeyed(job.told) == [], "and no runner obeys it"
    assert "\x1b" not in job.told


def test_oversized_artifact_is_not_downloaded(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    job.api.artifacts[0]["size_in_bytes"] = MAX_ARTIFACT_BYTES + 1
    assert job.comment() == REFUSED
    assert not any(asked.path.endswith("/zip") for asked in job.api.server.asked)


def test_artifact_that_is_larger_than_it_says_is_cut_off(job: Job) -> None:
    job.save(4)
    job.api.upload(bytes(MAX_ARTIFACT_BYTES + 1), run=RUN)
    job.api.artifacts[0]["size_in_bytes"] = 1
    assert job.comment() == REFUSED
    assert f"this is larger than {MAX_ARTIFACT_BYTES} bytes" in job.summary


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://127.0.0.1/x", ""])
def test_artifact_is_fetched_from_the_web_alone(job: Job, place: str) -> None:
    def lead(asked: Asked) -> Reply | None:
        return Reply(status=302, headers={"Location": place}) if asked.path.endswith("/zip") else None

    job.save(4)
    job.upload(uploaded())
    job.api.before = lead
    assert job.comment() == 10
    assert "it leads to an address that is not https" in job.problem


def test_vanished_artifact_is_reported(job: Job) -> None:
    def lose(asked: Asked) -> Reply | None:
        return Reply(status=404, data=b"<gone/>") if asked.path.startswith("/storage/") else None

    job.save(4)
    job.upload(uploaded())
    job.api.before = lose
    assert job.comment() == 10
    assert "what /repos/owner/project/actions/artifacts/500/zip leads to: 404" in job.problem


def test_token_is_sent_to_the_api_only(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    job.comment()
    shown = {
        asked.path.startswith("/storage/"): "authorization" in asked.headers for asked in job.api.server.asked
    }
    assert shown == {True: False, False: True}
