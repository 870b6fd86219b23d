"""What a fork's job has uploaded, judged and shown by a job of ours: the artifact chooses nothing."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from e2e.project import environment
from support.documents.strategies import simple_run, simple_test
from support.forges.artifacts import DOCUMENT, artifact_of, member, zip_of
from support.forges.github_api import HEAD, MERGED_AT, NUMBER, GitHubApi, pull, workflow_run_event
from support.forges.loopback import Asked, Reply

from pytest_opprof.baselines.accepted import Acceptance, accept
from pytest_opprof.baselines.archive import open_store
from pytest_opprof.cli.main import main
from pytest_opprof.compare.document import read_comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.forge.artifact import MAX_ARTIFACT_BYTES
from pytest_opprof.results.document import run_to_document
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Environment, Run

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")

RUN = 90
TEST = "tests/test_a.py::test_x"
REFUSED = 4
OURS = Environment(fingerprint={"python": "3.11", "torch": "2.13.0"})
THEIRS = Environment(fingerprint={"python": "3.11", "torch": "2.14.0"})


def run_of(count: int, *, commit: str, environment: Environment = OURS, **others: Any) -> Run:
    """A run in which a test calls an op so often."""
    test = simple_test({"aten::mul": count}, processes=2, **others)
    return simple_run(test, commit=Commit(id=commit, dirty=False), environment=environment)


def uploaded(count: int = 9, **changes: Any) -> dict[str, Any]:
    """The document of a pull request, which took nine calls where the baseline has four."""
    return {**run_to_document(run_of(count, commit=HEAD)), **changes}


@dataclass(kw_only=True)
class Job:
    """A job of ours in a checkout of the default branch.

    Attributes:
        api: GitHub's.
        folder: The checkout.
        told: What the command printed.
        problem: What it wrote to stderr.
    """

    api: GitHubApi
    folder: Path
    capsys: pytest.CaptureFixture[str]
    told: str = ""
    problem: str = ""

    def event(self, **others: Any) -> None:
        """Say what has ended."""
        event = workflow_run_event(**others)
        (self.folder.parent / "event.json").write_text(json.dumps(event), encoding="utf-8")

    def save(self, count: int, *, name: str = "main", commit: str = MERGED_AT, **others: Any) -> None:
        """Keep a baseline."""
        run = run_of(count, commit=commit, **others)
        open_store("dir:.opprof", root=self.folder).save(name, run, collected=Collected())

    def upload(self, document: Any, **others: Any) -> None:
        """Let the pull request's job upload a document."""
        self.api.upload(artifact_of(document), run=RUN, **others)

    def comment(self, *options: str) -> int:
        """Run the command."""
        before = self._files()
        code = main(["comment", "--from-event", "-o", "../comparison.json", *options])
        self.told, self.problem = self.capsys.readouterr()
        assert self._files() == before, "nothing in the checkout changes"
        assert (self.folder.parent / "output").read_text() == "", "no other step hears of it"
        return code

    def _files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    @property
    def summary(self) -> str:
        """What the job's page shows."""
        path = self.folder.parent / "summary.md"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def body(self) -> str:
        """The only comment."""
        (body,) = self.api.bodies
        return str(body)

    @property
    def verdict(self) -> Verdict | None:
        """Of the only test."""
        (test,) = read_comparison(self.folder.parent / "comparison.json").tests
        return test.verdict

    @property
    def written_to(self) -> set[str]:
        """The paths of requests that write."""
        return {asked.path for asked in self.api.server.asked if asked.method != "GET"}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Job]:
    api = GitHubApi()
    folder = tmp_path / "checkout"
    folder.mkdir()
    (tmp_path / "output").touch()
    surroundings: Mapping[str, str] = {
        **{name: value for name, value in environment().items() if name.startswith("GIT_")},
        "GIT_CEILING_DIRECTORIES": str(tmp_path),
        "GITHUB_API_URL": api.server.url,
        "GITHUB_TOKEN": "secret",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_RUN_NUMBER": "1000",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_ENV": str(tmp_path / "output"),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    found = Job(api=api, folder=folder, capsys=capsys)
    found.event()
    yield found
    api.close()


def test_regression_is_commented_as_the_pull_requests_own_numbers(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    assert job.comment() == 0, "the job that measured has failed already"
    assert job.verdict is Verdict.REGRESSED
    for page in (job.body, job.summary):
        assert "### opprof: REGRESSED: 1 test" in page
        assert "The numbers are the pull request's own" in page
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


# ---- the artifact chooses nothing ----


def test_artifact_cannot_choose_the_pull_request(job: Job) -> None:
    job.api.pulls.append(pull(number=99, head="e" * 40, branch="other"))
    job.save(4)
    job.upload(uploaded(notes=["pull request 99", "#99", "pulls/99"], run_id="99"))
    job.comment()
    assert job.written_to == {f"/repos/owner/project/issues/{NUMBER}/comments"}


@pytest.mark.parametrize("field", ["pull_request", "number", "pr", "head_sha", "verdict", "comment"])
def test_a_field_that_runs_do_not_have_is_ignored(job: Job, field: str) -> None:
    job.api.pulls.append(pull(number=99, head="e" * 40, branch="other"))
    job.save(4)
    job.upload(uploaded(**{field: 99}))
    job.comment()
    assert job.written_to == {f"/repos/owner/project/issues/{NUMBER}/comments"}
    assert "REGRESSED" in job.body


def test_artifact_cannot_choose_the_branch(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(name="main", commit={"id": HEAD, "dirty": False, "branch": "main"}))
    job.comment()
    head = read_comparison(job.folder.parent / "comparison.json").head
    assert (head.name, head.commit) == (None, Commit(id=HEAD, dirty=False))
    store = open_store("dir:.opprof", root=job.folder)
    assert [entry.commit for entry in store.entries("main")] == [MERGED_AT], "nothing became a baseline"


def test_artifact_cannot_choose_the_baseline_by_name(job: Job) -> None:
    job.save(4)
    job.save(50, name="generous")
    job.upload(uploaded(name="generous"))
    job.comment()
    assert job.verdict is Verdict.REGRESSED
    assert "main@aaaaaaa" in job.body


def test_artifact_cannot_choose_the_baseline_by_its_environment(job: Job) -> None:
    """An older baseline is from where the artifact says that it ran, and allows more."""
    git = ["git", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q"], check=True)
    commits = []
    for _ in range(2):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        found = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        commits.append(found.stdout.strip())
    old, new = commits
    job.api.merge_base = new
    job.save(50, commit=old, environment=THEIRS)
    job.save(4, commit=new)
    job.upload(run_to_document(run_of(9, commit=HEAD, environment=THEIRS)))
    job.comment()
    assert f"main@{new[:7]}" in job.body
    assert job.verdict is Verdict.INCONCLUSIVE


def test_artifact_of_another_commit_is_refused(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(commit={"id": "e" * 40, "dirty": False, "branch": None}))
    assert job.comment() == REFUSED
    assert "it measured eeeeeee, and the pull request is at bbbbbbb: check out" in job.summary
    assert job.api.bodies == []


@pytest.mark.parametrize(
    "commit", [None, {"id": HEAD[:7], "dirty": False, "branch": None}], ids=["none", "short"]
)
def test_artifact_without_a_whole_commit_is_refused(job: Job, commit: Any) -> None:
    job.save(4)
    job.upload(uploaded(commit=commit))
    assert job.comment() == REFUSED


def test_artifact_cannot_switch_a_gate_off(job: Job) -> None:
    job.save(4)
    test = {**uploaded()["tests"][0], "gates": {"ops.count": "off", "aten::mul.count": "off"}}
    job.upload(uploaded(tests=[test]))
    job.comment()
    assert job.verdict is Verdict.REGRESSED
    assert "1 test has other gates or limits in the pull request" in job.body


def test_artifact_cannot_raise_a_limit(job: Job) -> None:
    job.save(4, limits={"aten::mul.count": 4})
    test = {**uploaded(5)["tests"][0], "limits": {"aten::mul.count": 1000}}
    job.upload(uploaded(tests=[test]))
    job.comment("--gate", "ops.count=off")
    assert job.verdict is Verdict.REGRESSED
    assert "aten::mul.count is 5 in each step, and <= 4 is allowed" in job.body


@pytest.mark.parametrize("node_id", [TEST, "tests/test_a.py::test_another"])
@pytest.mark.parametrize(
    "limits",
    [
        {"aten::mul.count": 5},
        {"nonsense": 1},
        {f"{'?*a' * 300}{number}.count": "<= many" for number in range(1000)},
    ],
    ids=["a limit", "no metric", "patterns"],
)
def test_artifact_cannot_bring_limits(job: Job, node_id: str, limits: dict[str, Any]) -> None:
    job.save(9, node_id=node_id)
    test = {**uploaded(9)["tests"][0], "limits": limits, "gates": dict.fromkeys(limits, "exact")}
    job.upload(uploaded(tests=[test]))
    assert job.comment() == 0
    assert job.verdict in {Verdict.PASS, Verdict.NEW}
    assert "1 test has other gates or limits in the pull request: they hold once it is merged" in job.body


@pytest.mark.parametrize("part", ["fork_verdict.compare_runs", "commenting.markdown_comment"])
def test_what_an_artifact_breaks_is_told_in_place_of_an_older_pass(
    job: Job, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_tests_that_were_left_out_are_counted(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(tests=[]))
    job.comment()
    assert "1 of the baseline's tests are not in what the pull request has uploaded" in job.body
    assert "no test was measured" in job.body


def accepted(folder: Path) -> None:
    """Accept the rise in a project's list."""
    entry = Acceptance(
        test=TEST,
        op=None,
        metric="ops.count",
        value=9,
        reason="so",
        baseline="main",
        created=datetime(2026, 1, 1, tzinfo=UTC),
    )
    accept(folder, [entry])


def test_what_our_own_branch_accepts_passes(job: Job) -> None:
    job.save(4)
    accepted(job.folder / ".opprof")
    job.upload(uploaded())
    job.comment()
    assert job.verdict is Verdict.ACCEPTED


def test_artifact_cannot_accept_its_own_rise(job: Job, tmp_path: Path) -> None:
    job.save(4)
    accepted(tmp_path / "fork")
    listed = (tmp_path / "fork" / "accepted.json").read_bytes()
    document = json.dumps(uploaded()).encode()
    job.api.upload(zip_of((DOCUMENT, document), (".opprof/accepted.json", listed)), run=RUN)
    assert job.comment() == REFUSED
    job.api.upload(zip_of((DOCUMENT, listed)), run=RUN)
    assert job.comment() == REFUSED
    job.upload(uploaded())
    job.comment()
    assert job.verdict is Verdict.REGRESSED


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
    """An artifact with this text, not packed, so that nothing but the text is out of the ordinary."""
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
    "of the future": stored(WHOLE.replace('"schema_version": 2', '"schema_version": 3')),
    "another encoding": zip_of((DOCUMENT, WHOLE.encode("utf-16"))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_artifact_is_refused_in_a_sentence(job: Job, name: str) -> None:
    job.save(4)
    job.api.upload(HOSTILE[name], run=RUN)
    assert job.comment() == REFUSED
    assert len(job.told.splitlines()) == 2, job.told
    assert "artifact 500 of run 90: " in job.told
    assert job.summary.startswith("### opprof: no result\n\n`artifact 500 of run 90: ")
    assert len(job.summary) < 1_200
    assert job.api.bodies == []


def test_names_in_an_artifact_are_inert(job: Job) -> None:
    evil = "::error::x`</details>@org/team <img src=x> | <!-- opprof:sticky v1 -->\n::set-output name=a::b\x1b[31m"
    job.save(4)
    hostile = simple_test({evil: 3, "aten::mul": 9}, processes=2)
    run = replace(run_of(9, commit=HEAD), tests=(hostile,))
    job.upload(run_to_document(run))
    job.comment("--dry-run")
    lines = job.told.splitlines()
    assert any("set-output" in line for line in lines), "it is shown"
    assert not any(line.lstrip().startswith("::") for line in lines), "and no runner obeys it"
    assert "\x1b" not in job.told


def test_artifact_that_says_it_is_too_large_is_not_asked_for(job: Job) -> None:
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


def test_artifact_that_is_gone_where_it_was_stored_is_told(job: Job) -> None:
    def lose(asked: Asked) -> Reply | None:
        return Reply(status=404, data=b"<gone/>") if asked.path.startswith("/storage/") else None

    job.save(4)
    job.upload(uploaded())
    job.api.before = lose
    assert job.comment() == 10
    assert "what /repos/owner/project/actions/artifacts/500/zip leads to: 404" in job.problem


def test_token_is_shown_to_the_api_alone(job: Job) -> None:
    job.save(4)
    job.upload(uploaded())
    job.comment()
    shown = {
        asked.path.startswith("/storage/"): "authorization" in asked.headers for asked in job.api.server.asked
    }
    assert shown == {True: False, False: True}


# ---- what the event is about ----


@pytest.mark.parametrize(
    ("others", "pulls", "why"),
    [
        ({"event": "push"}, None, "the run that ended was not of a pull request but of the event push"),
        ({"head_repository": None}, None, "the measured branch no longer exists"),
        ({}, [], "no open pull request is at bbbbbbb"),
        ({}, [pull(head="e" * 40)], "no open pull request is at bbbbbbb"),
        ({}, [pull(fork="somebody/else")], "no open pull request is at bbbbbbb"),
        ({}, [pull(), pull(number=18, base="next")], "2 open pull requests are at bbbbbbb"),
    ],
    ids=["push", "deleted fork", "closed", "moved on", "same branch of another fork", "two"],
)
def test_without_its_pull_request_nothing_is_commented(
    job: Job, others: dict[str, Any], pulls: list[Any] | None, why: str
) -> None:
    job.save(4)
    job.upload(uploaded())
    job.event(**others)
    if pulls is not None:
        job.api.pulls = pulls
    assert job.comment() == 0
    assert why in job.told
    assert why in job.summary
    assert job.written_to == set()


@pytest.mark.parametrize("which", ["none", "expired", "of another run", "of another name"])
def test_missing_artifact_is_said(job: Job, which: str) -> None:
    job.save(4)
    if which != "none":
        job.upload(uploaded(), name="other" if which == "of another name" else "opprof-run")
        job.api.artifacts[0]["expired"] = which == "expired"
        job.api.artifacts[0]["workflow_run"]["id"] = 91 if which == "of another run" else RUN
    assert job.comment() == 0
    assert "the run that ended has uploaded no artifact opprof-run: look there for why" in job.summary
    assert job.api.bodies == [], "of no news there is no comment"


def test_comment_that_is_there_says_that_there_is_no_result_now(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(4))
    job.comment()
    assert "PASS" in job.body
    job.api.head = "e" * 40
    job.event(head_sha="e" * 40, id=91, run_number=5)
    assert job.comment() == 0
    assert "### opprof: no result" in job.body
    assert "PASS" not in job.body


def test_artifact_of_another_commit_than_the_events_is_refused(job: Job) -> None:
    job.save(4)
    job.upload(uploaded(), head="e" * 40)
    assert job.comment() == REFUSED
    assert "it is of another run or commit" in job.summary


# ---- our own side ----


def test_baseline_is_that_of_the_branch_it_would_be_merged_into(job: Job) -> None:
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


def test_event_of_something_else_is_a_wrong_use(job: Job) -> None:
    (job.folder.parent / "event.json").write_text("{}", encoding="utf-8")
    assert job.comment() == 2
    assert "--from-event is for workflows that run on workflow_run" in job.problem
