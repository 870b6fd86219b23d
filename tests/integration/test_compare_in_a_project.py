"""What `opprof compare` takes from the project around it: the merge base, and the configuration."""

import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.cli.main import main
from pytest_opprof.results.files import write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Environment, Run

OLD, NEW = "tests/test_old.py::test_x", "tests/test_new.py::test_x"


def git(*arguments: str) -> str:
    named = ("git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments)
    return subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()


def run_of(count: int, commit: str, *, node_id: str = NEW) -> Run:
    """A run at a commit; later commits do less."""
    test = simple_test({"aten::mul": count}, node_id=node_id)
    created = datetime(2026, 1, 10 - count, tzinfo=UTC)
    return simple_run(test, run_id=f"run{count}", created=created, commit=Commit(id=commit, dirty=False))


@pytest.fixture
def began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The merge base of main and the checked-out topic branch; main has moved on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    git("init", "-q", "-b", "main")
    store = open_store("dir:.opprof", root=tmp_path)
    for count in (5, 3):
        git("commit", "-q", "--allow-empty", "-m", f"{count}")
        store.save("main", run_of(count, git("rev-parse", "HEAD")), collected=Collected())
    git("checkout", "-q", "-b", "topic", "main~1")
    git("commit", "-q", "--allow-empty", "-m", "topic")
    write_run(tmp_path / "head.json", run_of(5, git("rev-parse", "HEAD")))
    return git("rev-parse", "main~1")


def test_base_is_the_run_of_the_merge_base(began: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "main", "head.json"]) == 0
    assert f"compared with main@{began[:7]} (merge-base, " in capsys.readouterr().out
    assert main(["report", "--base=main", "--head=head.json"]) == 0
    assert f"compared with main@{began[:7]} (merge-base, " in capsys.readouterr().out
    newest = git("rev-parse", "main")
    assert main(["compare", f"main@{newest[:7]}", "head.json"]) == 1
    assert f"than main@{newest[:7]}" in capsys.readouterr().out


@pytest.mark.usefixtures("began")
def test_a_run_of_another_repository_is_compared_with_the_newest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "other.json", run_of(3, "1" * 40))
    assert main(["compare", "main", "other.json"]) == 0
    assert "compared with" not in capsys.readouterr().out


@pytest.mark.usefixtures("began")
def test_base_is_of_the_heads_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = git("rev-parse", "HEAD")
    store = open_store("dir:.opprof", root=tmp_path)
    another = Environment(fingerprint={"python": "3.12", "torch": "2.13.0"})
    store.save("nightly", run_of(4, here), collected=Collected())
    store.save("nightly", replace(run_of(3, here), environment=another), collected=Collected())
    assert main(["compare", "nightly", "head.json"]) == 1
    printed = capsys.readouterr().out
    assert f"REGRESSED: 1 more op in each step than nightly@{here[:7]}" in printed
    assert f"compared with nightly@{here[:7]} (merge-base, " in printed


@pytest.mark.parametrize(
    ("configuration", "code"),
    [
        ("", 1),
        ("opprof_gate = ops.count=off", 0),
        ("opprof_fail_on = none", 0),
        ("opprof_fail_on = slower", 2),
        ("opprof_gate = ops.count", 2),
    ],
)
@pytest.mark.usefixtures("began")
def test_project_configuration_sets_the_gates(tmp_path: Path, configuration: str, code: int) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{configuration}\n")
    write_run(tmp_path / "more.json", run_of(6, git("rev-parse", "HEAD")))
    assert main(["compare", "main", "more.json"]) == code


@pytest.mark.usefixtures("began")
def test_project_renames_match_old_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = '[tool.pytest.ini_options]\nopprof_rename = ["tests/test_old.py -> tests/test_new.py"]\n'
    (tmp_path / "pyproject.toml").write_text(written)
    write_run(tmp_path / "old.json", run_of(4, git("rev-parse", "HEAD"), node_id=OLD))
    assert main(["compare", "old.json", "head.json"]) == 1
    assert "REGRESSED: 1 more op in each step" in capsys.readouterr().out
    main(["report", "--base=old.json", "--head=head.json"])
    assert "REGRESSED" in capsys.readouterr().out
