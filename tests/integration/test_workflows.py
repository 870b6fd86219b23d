"""Workflows and actions of this repository: their permissions, the things they name, and shell inputs."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.forges.workflow_steps import (
    ACTIONS,
    REPOSITORY,
    WORKFLOWS,
    Expression,
    expressions,
    jobs,
    parsed,
    steps,
)

FILES = [*WORKFLOWS, *ACTIONS]
STEPS = [pytest.param(step, id=name) for path in FILES for name, step in steps(path)]
RUNS = [pytest.param(step, id=name) for path in FILES for name, step in steps(path) if "run" in step]
JOBS = [
    pytest.param(path, job, id=f"{path.name}: {name}")
    for path in WORKFLOWS
    for name, job in jobs(path).items()
]
GITLAB = parsed(REPOSITORY / "templates" / "opprof.gitlab-ci.yml")
SCRIPTS = [
    *(
        pytest.param("bash", step["run"], id=name)
        for path in FILES
        for name, step in steps(path)
        if "run" in step
    ),
    *(
        pytest.param("sh", "\n".join(job["script"]), id=name)
        for name, job in GITLAB.items()
        if "script" in job
    ),
]
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40}$")
USES = re.compile(r"^\s*(?:- )?uses:\s*(\S+)(.*)$", re.MULTILINE)
# The author of a pull request chooses these.
CHOSEN_BY_OTHERS = ("head_ref", "github.event", "head_branch", "github.actor", "inputs.", "head.ref")
ACTION_OF_HERE = "./.github/actions/"


def project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))


def by_name(name: str) -> dict[str, Any]:
    (path,) = (path for path in WORKFLOWS if path.name == name)
    return parsed(path)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_starts_without_permissions(path: Path) -> None:
    document = parsed(path)
    assert document["permissions"] == {}
    assert document["concurrency"]["group"]


@pytest.mark.parametrize(("path", "job"), JOBS)
def test_jobs_declare_permissions_and_timeout(path: Path, job: Mapping[str, Any]) -> None:
    assert isinstance(job["permissions"], dict)
    # nobody waits for a scheduled job
    nobody_waits = parsed(path)["on"].keys() <= {"schedule", "workflow_dispatch"}
    assert job["timeout-minutes"] <= (350 if nobody_waits else 45)


def test_long_targets_run_on_a_schedule() -> None:
    (job,) = by_name("long.yml")["jobs"].values()
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(job["strategy"]["matrix"]["target"])
    assert targets == {"test-all", "chaos", "fuzz", "mutants", "soak", "bench"}
    assert targets <= set(re.findall(r"^\.PHONY: ([\w-]+)$", makefile, re.MULTILINE))


def test_only_listed_jobs_may_write() -> None:
    writing = {
        (path.name, name, right)
        for path in WORKFLOWS
        for name, job in jobs(path).items()
        for right, level in job["permissions"].items()
        if level == "write"
    }
    assert writing == {
        ("performance.yml", "save", "contents"),
        ("performance-report.yml", "report", "pull-requests"),
        ("wheels.yml", "publish", "id-token"),
    }


def test_a_pull_request_never_reaches_a_job_that_writes() -> None:
    assert by_name("performance.yml")["jobs"]["save"]["if"] == "${{ github.event_name == 'push' }}"
    for path in WORKFLOWS:
        assert "pull_request_target" not in parsed(path)["on"]


def test_judging_job_does_not_check_out_the_pull_request() -> None:
    (job,) = by_name("performance-report.yml")["jobs"].values()
    (checkout,) = (step for step in job["steps"] if "checkout" in step.get("uses", ""))
    assert "ref" not in checkout["with"]
    assert "repository" not in checkout["with"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_third_party_actions_are_pinned_with_a_version_comment(path: Path) -> None:
    for name, comment in USES.findall(path.read_text(encoding="utf-8")):
        if name.startswith(ACTION_OF_HERE):
            assert (REPOSITORY / name / "action.yml").is_file()
        else:
            assert PINNED.match(name)
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_an_action_is_the_same_version_everywhere() -> None:
    found = {name for path in FILES for name, _ in USES.findall(path.read_text(encoding="utf-8"))}
    assert len({name.partition("@")[0] for name in found}) == len(found)


@pytest.mark.parametrize("step", STEPS)
def test_a_checkout_leaves_no_token_behind(step: Mapping[str, Any]) -> None:
    if "actions/checkout@" in step.get("uses", ""):
        assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("step", STEPS)
def test_given_inputs_are_declared(step: Mapping[str, Any]) -> None:
    if step.get("uses", "").startswith(ACTION_OF_HERE):
        declared = parsed(REPOSITORY / step["uses"] / "action.yml")["inputs"]
        assert step.get("with", {}).keys() <= declared.keys()


@pytest.mark.parametrize("step", RUNS)
def test_a_shell_gets_values_from_its_environment_alone(step: Mapping[str, Any]) -> None:
    assert expressions(step["run"]) == []
    assert expressions(step.get("shell", "")) == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_attacker_controlled_values_stay_out_of_steps(path: Path) -> None:
    document = parsed(path)
    del document["concurrency"]
    allowed = {"github.event.pull_request.head.sha"}  # a hash that GitHub has validated
    for job in document["jobs"].values():
        for step in job["steps"]:
            found = {each for each in expressions(step) if any(chosen in each for chosen in CHOSEN_BY_OTHERS)}
            assert found <= allowed


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name)
def test_inputs_are_described_and_used(path: Path) -> None:
    document = parsed(path)
    text = path.read_text(encoding="utf-8")
    for name, declared in document["inputs"].items():
        assert declared["description"].strip()
        assert "default" in declared
        assert f"inputs.{name}" in text
    page = (REPOSITORY / "docs" / "ci.md").read_text(encoding="utf-8")
    for name in document["inputs"]:
        assert f"| `{name}` |" in page


@pytest.mark.parametrize("step", RUNS)
def test_named_make_targets_exist(step: Mapping[str, Any]) -> None:
    for command in re.findall(r"^\s*make ([\w-].*)$", step["run"], re.MULTILINE):
        done = subprocess.run(
            ["make", "--dry-run", *command.split(), f"PYTHON={sys.executable}"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("step", RUNS)
def test_named_test_files_exist(step: Mapping[str, Any]) -> None:
    for name in re.findall(r"\btests/\S+\.py", step["run"]):
        assert (REPOSITORY / name).is_file()


@pytest.mark.parametrize(("shell", "script"), SCRIPTS)
def test_shellcheck_finds_nothing(shell: str, script: str) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which(
        "shellcheck"
    )
    if shellcheck is None:
        pytest.skip("shellcheck is not installed: see the dev extra")
    done = subprocess.run(
        [shellcheck, f"--shell={shell}", "--severity=style", "-"],
        input=f"set -e\n{script}",  # as runners have it
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_each_supported_python_is_tested_and_built() -> None:
    classifiers = project()["project"]["classifiers"]
    supported = [
        found[1]
        for found in (
            re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each) for each in classifiers
        )
        if found
    ]
    assert by_name("ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == supported
    built = project()["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-*" for version in supported]


def test_the_oldest_pytest_is_the_oldest_that_is_allowed() -> None:
    (required,) = (each for each in project()["project"]["dependencies"] if each.startswith("pytest>"))
    matrix = by_name("ci.yml")["jobs"]["pytest-versions"]["strategy"]["matrix"]["include"]
    by_age = {each["pytest"]: each["requirement"] for each in matrix}
    assert by_age == {"oldest": required.replace(">=", "==") + ".*", "newest": required}


def test_measured_folder_is_the_reported_one() -> None:
    measuring, reporting = by_name("performance.yml"), by_name("performance-report.yml")
    assert reporting["on"]["workflow_run"]["workflows"] == [measuring["name"]]
    given = [
        step["with"]["working-directory"]
        for document in (measuring, reporting)
        for job in document["jobs"].values()
        for step in job["steps"]
        if step.get("uses", "").startswith(ACTION_OF_HERE)
    ]
    assert given == ["tests/performance"] * 3


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("startsWith(inputs.store, 'git:')", True),
        ("!startsWith(inputs.store, 'git:') || inputs.none", ""),
        ("inputs.none && 'x' || 'y'", "y"),
        ("(inputs.store == 'git:') && !cancelled()", True),
        ("inputs.store != 'it''s'", True),
    ],
)
def test_expressions_are_read_as_github_reads_them(expression: str, value: object) -> None:
    assert Expression(context={"inputs.store": "git:"}).value(expression) == value
