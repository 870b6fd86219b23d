"""The actions for other repositories, run step by step as a runner does, in clones of real repositories."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.hosted import TOKEN, Forge, new_forge
from e2e.project import INI, WORK_TWICE
from support.forges.artifacts import artifact_of
from support.forges.github_api import GitHubApi, workflow_run_event
from support.forges.workflow_steps import REPOSITORY, Runner

from pytest_opprof.results.files import read_run

MEASURE = REPOSITORY / ".github" / "actions" / "measure" / "action.yml"
REPORT = REPOSITORY / ".github" / "actions" / "report" / "action.yml"
RUN = 90


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return new_forge(tmp_path)


def measure(job: Runner, **inputs: str) -> Runner:
    job.action(MEASURE, python=sys.executable, **inputs)
    return job


def test_a_push_saves_and_a_pull_request_is_compared(forge: Forge) -> None:
    base = forge.commit()
    saved = measure(forge.push(base))
    assert saved.failed is None
    assert saved.context["steps.plan.outputs.mode"] == "save"
    assert forge.baselines == ["refs/opprof/main"]

    same = measure(forge.pull_request(base))
    assert same.failed is None

    forge.work.write("test_it.py", WORK_TWICE)
    head = forge.commit("topic")
    more = measure(forge.pull_request(head))
    assert more.failed == ("Measure", 1), "the job is as red as its tests"
    assert "REGRESSED: 1 more range in each step than main@" in more.printed
    assert more.context["steps.plan.outputs.mode"] == "compare"

    # GitHub does the uploads; their input files exist, also for a run that failed.
    assert more.used["Upload what was measured"]["name"] == "opprof-run"
    document = Path(more.used["Upload what was measured"]["path"])
    assert document.name == "opprof-run.json"
    assert [path.name for path in document.parent.iterdir()] == [document.name]
    run = read_run(document)
    assert run.commit is not None
    assert run.commit.id == head
    traces = list(Path(more.used["Upload traces"]["path"]).rglob("*.json*"))
    assert all(trace.stat().st_size for trace in traces)
    # The job's traces, and the pair of a regressed test: the head's is linked, or copied if it cannot be.
    assert sorted(trace.name.split(".", 1)[1] for trace in traces) == ["head.json.gz", "json.gz"], traces

    assert forge.baselines == ["refs/opprof/main"], "a pull request writes none"


def test_a_branch_that_is_not_protected_gets_no_baseline(forge: Forge) -> None:
    job = measure(forge.push(forge.commit(), protected="false"))
    assert "::notice::opprof: this is not a protected branch" in job.printed
    assert "no baseline 'main'" in job.printed, "a gate that has nothing to compare with is not green"
    assert job.failed == ("Measure", 1)
    assert forge.baselines == []


def test_a_protected_tag_is_not_a_branch(forge: Forge) -> None:
    job = measure(forge.push(forge.commit(), of="tag"), arguments="--version")
    assert job.context["steps.plan.outputs.mode"] == "compare"


@pytest.mark.slow
def test_failed_tests_push_nothing(forge: Forge) -> None:
    forge.work.write("test_other.py", "def test_other():\n    assert 0\n")
    job = measure(forge.push(forge.commit()))
    assert job.failed == ("Measure", 1)
    assert forge.baselines == []
    assert "Upload what was measured" in job.used


def test_no_shell_looks_at_an_input(forge: Forge) -> None:
    commit = forge.commit()
    marks = [forge.folder / name for name in ("substituted", "separated", "named")]
    job = measure(
        forge.push(commit),
        arguments=f"-k\ntest_it or $(touch {marks[0]})\n-q; touch {marks[1]}\n",
        baseline=f"$(touch {marks[2]})",
    )
    assert job.failed is not None, "these are not arguments of pytest"
    assert not [mark for mark in marks if mark.exists()]


def test_arguments_are_one_a_line(forge: Forge) -> None:
    forge.work.write("test_other.py", "def test_other():\n    assert 0\n")
    job = measure(
        forge.push(forge.commit()),
        arguments="-k\ntest_it and not other\n\n--opprof-save-processes=1",
        baseline="release",
    )
    assert job.failed is None
    assert forge.baselines == ["refs/opprof/release"]


def test_another_store_is_neither_fetched_nor_pushed(forge: Forge) -> None:
    job = forge.push(forge.commit())
    store = forge.folder / "kept"
    measure(job, store=f"dir:{store}", arguments="--opprof-save-processes=1")
    assert job.failed is None
    assert len(list(store.rglob("*.json"))) == 1
    assert forge.baselines == []


def test_a_folder_of_the_checkout_has_its_own_tests(forge: Forge) -> None:
    forge.work.write("package/pytest.ini", INI)
    forge.work.write("package/test_inner.py", WORK_TWICE)
    job = measure(
        forge.push(forge.commit()), working_directory="package", arguments="--opprof-save-processes=1"
    )
    assert job.failed is None
    run = read_run(Path(job.used["Upload what was measured"]["path"]))
    assert [test.node_id for test in run.tests] == ["test_inner.py::test_it"]


def test_the_token_goes_to_the_forge_alone_and_is_masked(forge: Forge) -> None:
    """Git itself is asked for what it would send: what was given for one step is there in no other.

    The token replaces the credential that the checkout left.
    """
    job = forge.pull_request(forge.commit())
    left = "AUTHORIZATION: basic of-the-checkout"
    with (job.folder / ".git" / "config").open("a", encoding="utf-8") as config:
        config.write(f'[http "https://github.example/"]\n\textraheader = {left}\n')
    shown = forge.folder / "shown"
    bin_folder = forge.folder / "bin"
    bin_folder.mkdir()
    git = bin_folder / "git"
    git.write_text(
        f'#!/bin/sh\nPATH="{os.environ["PATH"]}"\n'
        f'git config --get-urlmatch http.extraheader https://github.example/o/p >> "{shown}"\n'
        f'exec git "$@"\n',
        encoding="utf-8",
    )
    git.chmod(0o755)
    job.variables = {**job.variables, "PATH": f"{bin_folder}:{job.variables['PATH']}"}
    measure(job)
    header, *others = shown.read_text(encoding="utf-8").splitlines()
    assert set(others) == {left}
    secret = header.removeprefix("AUTHORIZATION: basic ")
    assert f"::add-mask::{secret}\n" in job.printed
    assert TOKEN not in job.printed


# pip would fetch build requirements: the test checks what the installation asks for,
# and uses the packages of this environment instead.
INSTALLER = """\
#!/bin/sh
test "$1 $2" = "-m venv" || exit 9
mkdir -p "$3/bin"
ln -s "{opprof}" "$3/bin/opprof"
printf '#!/bin/sh\\nfor last; do :; done; echo "$last" > "$0.asked"\\n' > "$3/bin/python"
chmod +x "$3/bin/python"
"""


@dataclass(frozen=True, kw_only=True)
class Uploaded:
    """A pull request that does more than main and has measured itself.

    Attributes:
        forge: Its repository.
        base: The commit that it started from, which has a baseline.
        head: Its own commit.
        document: The run file that its job would upload.
    """

    forge: Forge
    base: str
    head: str
    document: bytes


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory: pytest.TempPathFactory) -> Uploaded:
    forge = new_forge(tmp_path_factory.mktemp("uploaded"))
    base = forge.commit()
    assert measure(forge.push(base)).failed is None
    forge.work.write("test_it.py", WORK_TWICE)
    head = forge.commit("topic")
    job = measure(forge.pull_request(head))
    document = Path(job.used["Upload what was measured"]["path"]).read_bytes()
    return Uploaded(forge=forge, base=base, head=head, document=document)


@pytest.fixture
def api(uploaded: Uploaded) -> Iterator[GitHubApi]:
    """GitHub, with the pull request and its artifact."""
    pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")
    made = GitHubApi()
    made.head, made.merge_base = uploaded.head, uploaded.base
    made.upload(artifact_of(uploaded.document), run=RUN, head=uploaded.head)
    yield made
    made.close()


@pytest.fixture
def installer(tmp_path: Path) -> str:
    """A replacement for the interpreter that makes the environment."""
    path = tmp_path / "installer"
    path.write_text(INSTALLER.format(opprof=Path(sys.executable).parent / "opprof"), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def report(
    uploaded: Uploaded, api: GitHubApi, installer: str, *, branch: str = "topic", **inputs: str
) -> Runner:
    """Run the action in a job of main, for the pull request's finished run."""
    event = uploaded.forge.folder.parent / "event.json"
    event.write_text(
        json.dumps(workflow_run_event(head_sha=uploaded.head, head_branch=branch)), encoding="utf-8"
    )
    job = uploaded.forge.job(
        "origin/main",
        GITHUB_API_URL=api.server.url,
        GITHUB_EVENT_NAME="workflow_run",
        GITHUB_EVENT_PATH=str(event),
        GITHUB_RUN_NUMBER="7",
        GITHUB_RUN_ATTEMPT="1",
        NO_PROXY="127.0.0.1",
        no_proxy="127.0.0.1",
    )
    job.action(REPORT, python=installer, **inputs)
    return job


def test_uploaded_run_becomes_a_comment(uploaded: Uploaded, api: GitHubApi, installer: str) -> None:
    job = report(uploaded, api, installer)
    assert job.failed is None
    (body,) = api.bodies
    for page in (body, job.summary):
        assert "### opprof: REGRESSED: 1 test" in page
        assert "The pull request's own code measured these numbers" in page
    assert {asked.headers["authorization"] for asked in api.server.asked if "repos" in asked.path} == {
        f"Bearer {TOKEN}"
    }
    assert TOKEN not in job.printed
    asked = (job.temporary / "opprof" / "bin" / "python.asked").read_text(encoding="utf-8").strip()
    source, _, extra = asked.partition("[")
    assert extra == "github]"
    assert Path(source).resolve() == REPOSITORY, "the code that the action came with"


@pytest.mark.slow
def test_options_of_the_report_reach_the_command(uploaded: Uploaded, api: GitHubApi, installer: str) -> None:
    job = report(
        uploaded,
        api,
        installer,
        baseline="main",
        gates="work.count=off\nranges.count=off\n",
        configuration="cuda",
        when="regressed",
        requirement="pytest-opprof[github]==0.1.0",
    )
    assert job.failed is None
    assert api.bodies == [], "with these gates off there is nothing to tell"
    assert "configuration cuda" in job.summary
    asked = (job.temporary / "opprof" / "bin" / "python.asked").read_text(encoding="utf-8")
    assert asked == "pytest-opprof[github]==0.1.0\n"


def test_without_an_artifact_the_summary_says_so(uploaded: Uploaded, api: GitHubApi, installer: str) -> None:
    api.artifacts.clear()
    job = report(uploaded, api, installer)
    assert job.failed is None
    assert "uploaded no artifact opprof-run" in job.summary
    assert api.bodies == []


def test_names_of_the_pull_request_reach_no_shell(uploaded: Uploaded, api: GitHubApi, installer: str) -> None:
    mark = uploaded.forge.folder / "ran"
    name = f"$(touch${{IFS}}{mark})"
    for pull in api.pulls:
        pull["head"]["ref"] = name
    document = json.loads(uploaded.document)
    for test in document["tests"]:
        test["node_id"] = f"test_it.py::{name}\n::error::ran\n::stop-commands::x"
    api.artifacts.clear()
    api.upload(artifact_of(document), run=RUN, head=uploaded.head)
    job = report(uploaded, api, installer, branch=name)
    assert not mark.exists()
    commands = [line for line in job.printed.splitlines() if line.startswith("::")]
    assert all(line.startswith("::add-mask::") for line in commands)
    assert job.summary
