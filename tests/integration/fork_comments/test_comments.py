"""Uploads of a fork's job, judged and shown by a job of ours, with our baselines and gates."""

import pytest
from support.forges.fork_jobs import RUN, Job, uploaded
from support.forges.github_api import HEAD, pull
from support.forges.loopback import Asked, Reply

from pytest_opprof.compare.verdicts import Verdict

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")


def test_regression_comment_says_the_pull_request_measured_it(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    assert job.comment() == 0, "the job that measured has failed already"
    assert job.verdict is Verdict.REGRESSED
    for page in (job.body, job.summary):
        assert "### opprof: REGRESSED: 1 test" in page
        assert "The pull request's own code measured these numbers" in page
        assert "`main@aaaaaaa` → `bbbbbbb`" in page
        assert "compared with main@aaaaaaa (merge-base" in page
        assert "`aten::mul`" in page
    assert job.body.startswith("<!-- opprof:sticky v1 key=")
    assert f"head={HEAD} run=4.1 -->" in job.body.partition("\n")[0]
    assert job.told == "wrote a comment\n"


def test_second_run_updates_the_comment(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    job.comment()
    job.event(run_attempt=2)
    job.upload(uploaded(4))
    job.comment()
    assert "opprof: PASS" in job.body, "the newest artifact of the run counts"
    assert "run=4.2" in job.body


def test_good_news_can_be_kept_quiet(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(4))
    assert job.comment("--when", "regressed") == 0
    assert job.api.bodies == []
    assert "opprof: PASS" in job.summary
    job.upload(uploaded(5))
    job.comment("--when", "regressed")
    assert "opprof: REGRESSED" in job.body


def test_dry_run_prints_and_writes_nothing(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    assert job.comment("--dry-run") == 0
    assert "### opprof: REGRESSED: 1 test" in job.told
    assert job.api.bodies == []
    assert job.summary == ""
    assert job.written_to == set()


def test_configuration_has_a_comment_of_its_own(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    job.comment()
    job.comment("--configuration", "cuda")
    assert len(job.api.bodies) == 2
    assert "configuration cuda" in job.api.bodies[1]


def test_traces_are_linked_where_they_were_uploaded(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    job.comment()
    assert "Traces" not in job.body
    job.api.upload(b"never looked at", run=RUN, name="opprof-traces")
    job.comment()
    assert "[Traces](<https://github.com/owner/project/actions/runs/90#artifacts>)" in job.body


def test_refused_comment_leaves_the_summary(job: Job) -> None:
    def refuse(asked: Asked) -> Reply | None:
        value = {"message": "Resource not accessible by integration"}
        return Reply(status=403, value=value) if asked.method == "POST" else None

    job.save(4)
    job.upload(uploaded())
    job.api.before = refuse
    assert job.comment() == 11
    assert "opprof: REGRESSED" in job.summary
    assert job.problem.count("\n") == 1
    assert "the workflow needs `permissions: pull-requests: write`" in job.problem


# ---- our own side ----


def test_target_branch_supplies_the_baseline(job: Job) -> None:
    job.api.pulls = [pull(base="release-1")]
    job.save(4)
    job.save(9, name="release-1")
    job.upload(uploaded())
    job.comment()
    assert "opprof: PASS" in job.body
    job.comment("--baseline", "main")
    assert "opprof: REGRESSED" in job.body


def test_without_a_baseline_nothing_passes(job: Job) -> None:
    job.upload(uploaded())
    assert job.comment("--when", "regressed") == 0
    assert "compared with nothing" in job.body
    assert "no baseline 'main' in dir:.opprof (it is empty)" in job.body
    assert job.verdict is None


def test_unknown_start_falls_back_to_the_branch(job: Job) -> None:
    job.api.merge_base = None
    job.save(4, commit="c" * 40)
    job.upload(uploaded())
    job.comment()
    assert "compared with main@ccccccc (merge-base" in job.body


def test_gate_of_the_command_line_holds(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    job.comment("--gate", "ops.count=200%")
    assert job.verdict is not Verdict.REGRESSED


def test_other_event_is_a_usage_error(job: Job) -> None:
    (job.folder.parent / "event.json").write_text("{}", encoding="utf-8")
    assert job.comment() == 2
    assert "--from-event is for workflows that run on workflow_run" in job.problem
