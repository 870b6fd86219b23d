"""A project's history: what sessions add to it, and what the command prints."""

import csv
import io
import json
import subprocess

import pytest
from e2e.project import INI, WORK_TWICE, Project


@pytest.fixture
def repository(project: Project) -> Project:
    """A git project with one commit on main; saves need no certificate here."""
    project.git("init", "-q", "-b", "main")
    project.write("pytest.ini", f"{INI}opprof_save_processes = 1\n")
    project.write("test_it.py", WORK_TWICE)
    project.commit()
    return project


def opprof(project: Project, *arguments: str, cwd: str = ".") -> subprocess.CompletedProcess[str]:
    return project.python("-m", "pytest_opprof.cli.main", *arguments, cwd=cwd)


def points_of(project: Project, *arguments: str) -> list[dict[str, object]]:
    done = opprof(project, "history", "test_it", *arguments, "--json")
    assert done.returncode == 0
    points: list[dict[str, object]] = json.loads(done.stdout)[0]["points"]
    return points


def test_saved_runs_become_a_trend(repository: Project) -> None:
    first = repository.commit()
    assert repository.pytest("--opprof-save=main").exit_code == 0
    repository.replace("test_it.py", "range(2)", "range(5)")
    second = repository.commit()
    assert repository.pytest("--opprof-save=main").exit_code == 0
    assert repository.pytest("--opprof-baseline=main").exit_code == 0, "compared, and not remembered"

    done = opprof(repository, "history", "test_it", "work.count")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["test_it.py::test_it"]
    assert "work.count in each step: 2 runs, 1 change" in done.stdout
    assert lines[-2][2:] == [first[:7], "main", "2"]
    assert lines[-1][2:] == [second[:7], "main", "5", "+3", "<-", "work.count", "changed"]

    points = points_of(repository, "work.count")
    assert [(point["commit"], point["value"], point["is_change"]) for point in points] == [
        (first, 2.0, False),
        (second, 5.0, True),
    ]
    assert all(point["committed"] for point in points)
    table = opprof(repository, "history", "test_it", "work.count", "--csv").stdout
    assert [row["value"] for row in csv.DictReader(io.StringIO(table))] == ["2.0", "5.0"]
    assert repository.git("status", "--porcelain") == "", "the history ignores itself"
    listed = json.loads(opprof(repository, "baseline", "list", "--json").stdout)
    assert [each["name"] for each in listed] == ["main"], "the history is not a baseline"


@pytest.mark.slow
def test_every_run_is_remembered_on_request(repository: Project) -> None:
    repository.write("pytest.ini", f"{INI}opprof_save_processes = 1\nopprof_history = all\n")
    repository.pytest(writes_run=False)
    repository.pytest("--opprof-save=main", writes_run=False)
    repository.pytest("--opprof-history=off", "--opprof-save=main", writes_run=False)
    points = points_of(repository)
    assert [point["name"] for point in points] == [None, "main"]
    assert len({point["commit"] for point in points}) == 1
    assert len(points_of(repository, "--name=main")) == 1
    assert "it must be one of saved, all, off" in repository.pytest("--opprof-history=some").stderr


@pytest.mark.slow
def test_workers_runs_are_remembered_once(repository: Project) -> None:
    repository.pytest("-n2", "--opprof-history=all", plugins=("xdist",))
    assert len(points_of(repository)) == 1


@pytest.mark.slow
def test_only_the_first_rank_is_added(repository: Project) -> None:
    for rank in ("0", "1"):
        session = repository.pytest(
            "--opprof-history=all",
            "--opprof-json=run-{rank}.json",
            env={"RANK": rank, "WORLD_SIZE": "2"},
            writes_run=False,
        )
        assert session.exit_code == 0
        assert (repository.folder / f"run-{rank}.json").exists()
    assert len(points_of(repository)) == 1


@pytest.mark.slow
def test_older_runs_are_imported_once(repository: Project) -> None:
    repository.pytest("--opprof-save=main", "--opprof-history=off")
    repository.commit()
    session = repository.pytest()
    # A process of an A/B is not a separate run.
    repository.write(".opprof/ab/20260102-030405-1a2b/first-0000-base.json", session.document.read_text())
    done = opprof(repository, "history", "--import", ".opprof", str(session.document))
    assert done.stdout == "2 runs imported, 0 were there already, 0 have no usable test\n"
    again = opprof(repository, "history", "--import", ".opprof")
    assert again.stdout == "0 runs imported, 1 were there already, 0 have no usable test\n"
    assert len(points_of(repository)) == 2
    assert opprof(repository, "history", "--compact").stdout == "2 runs in 1 files\n"
    assert len(points_of(repository)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("history", ["saved", "all"])
def test_run_that_is_saved_from_its_file_is_remembered(repository: Project, history: str) -> None:
    session = repository.pytest(f"--opprof-history={history}")
    for name in ("kept", "kept", "v1"):
        assert opprof(repository, "baseline", "save", name, str(session.document)).returncode == 0
        assert [point["name"] for point in points_of(repository)] == ["kept"]
        assert [point["name"] for point in points_of(repository, f"--name={name}")] == [name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "origins", [("", ""), ("https://me:secret@host.example/one.git", "git@host.example:two")]
)
def test_projects_that_share_a_store_have_histories_of_their_own(
    project: Project, origins: tuple[str, str]
) -> None:
    """Two repositories, one with two projects, whose tests have equal names."""
    places = {"one": 2, "two/a": 3, "two/b": 4}
    for place, many in places.items():
        project.write(
            f"{place}/pytest.ini", f"{INI}opprof_save_processes = 1\nopprof_store = dir:../shared\n"
        )
        project.write(f"{place}/test_it.py", WORK_TWICE.replace("range(2)", f"range({many})"))
    project.replace("two/a/pytest.ini", "../shared", "../../shared")
    project.replace("two/b/pytest.ini", "../shared", "../../shared")
    for name, origin in zip(("one", "two"), origins, strict=True):
        project.git("init", "-q", "-b", "main", name)
        project.git("-C", name, "add", ".")
        project.git("-C", name, "commit", "-q", "-m", "one")
        if origin:
            project.git("-C", name, "remote", "add", "origin", origin)
    for _ in range(2):
        for place in places:
            assert project.pytest("--opprof-save=main", "--opprof-history=all", cwd=place).exit_code == 0
    for place, many in places.items():
        done = opprof(project, "history", "test_it", "work.count", "--json", cwd=place)
        assert [point["value"] for point in json.loads(done.stdout)[0]["points"]] == [many, many]
    names = [path.name for path in (project.folder / "shared" / "history").iterdir()]
    assert len(names) == 3
    assert "secret" not in "".join(names)


@pytest.mark.slow
def test_a_clone_has_the_history_of_its_repository(project: Project) -> None:
    project.write("one/pytest.ini", f"{INI}opprof_save_processes = 1\nopprof_store = dir:../shared\n")
    project.write("one/test_it.py", WORK_TWICE)
    project.git("init", "-q", "-b", "main", "one")
    project.git("-C", "one", "add", ".")
    project.git("-C", "one", "commit", "-q", "-m", "one")
    project.git("clone", "-q", "one", "clone")
    project.git("-C", "one", "worktree", "add", "-q", "--detach", "../tree")
    places = ("one", "clone", "tree")
    for place in places:
        assert project.pytest("--opprof-save=main", cwd=place).exit_code == 0
    for place in places:
        done = opprof(project, "history", "test_it", "work.count", "--json", cwd=place)
        assert len(json.loads(done.stdout)[0]["points"]) == 3


@pytest.mark.slow
def test_invalid_queries_are_one_sentence(repository: Project) -> None:
    assert opprof(repository, "history", "test_it").stderr == (
        "opprof: the history is empty. Record tests with pytest --opprof-save=NAME\n"
    )
    assert opprof(repository, "history").returncode == 2
    repository.pytest("--opprof-save=main")
    told = opprof(repository, "history", "test_its")
    assert (told.returncode, told.stderr) == (
        2,
        "opprof: the history has no test 'test_its' (did you mean 'test_it.py::test_it'?)\n",
    )
    told = opprof(repository, "history", "test_it", "--name=release")
    assert told.stderr == "opprof: test_it.py::test_it has no run that was saved as 'release'\n"


def test_store_that_cannot_be_written_fails_a_save(repository: Project) -> None:
    repository.write(".opprof/history", "a file\n")
    session = repository.pytest("--opprof-save=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert session.outcomes == {"test_it": "passed"}
    assert any("history cannot be written" in line for line in session.told)


@pytest.mark.slow
def test_tables_of_a_store_are_asked(repository: Project) -> None:
    pytest.importorskip("duckdb")
    repository.commit()
    assert repository.pytest("--opprof-save=main").exit_code == 0
    repository.replace("test_it.py", "range(2)", "range(5)")
    second = repository.commit()
    assert repository.pytest("--opprof-save=main").exit_code == 0
    tables = ("history", "--tables", "tables")

    done = opprof(repository, *tables, "--import", ".opprof", "--repo", "it")
    assert done.stdout == "2 runs of it imported, 0 there already, 0 with no usable test\n"
    done = opprof(
        repository, *tables, "--import", ".opprof", "--repo", "it", "work.count", "--where", "python >= '3.9'"
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert " ".join(lines[0]) == "0 runs of it imported, 2 there already, 0 with no usable test"
    assert " ".join(lines[1]) == "work.count in each step: 1 change in 1 test, 2 runs"
    assert lines[-2][2:] == [second[:7], "main", "it"]
    assert lines[-1] == ["2", "->", "5", "test_it.py::test_it"]
    (change,) = json.loads(opprof(repository, *tables, "work.count", "--json").stdout)
    assert (change["commit"], change["before"], change["after"]) == (second, 2.0, 5.0)
    (row,) = csv.DictReader(io.StringIO(opprof(repository, *tables, "work.count", "--csv").stdout))
    assert (row["repository"], row["commit"]) == ("it", second)

    # The trend equals the log's, and has op times if the run file existed.
    assert points_of(repository, "work.count", "--tables", "tables") == points_of(repository, "work.count")
    known = [
        point["value"] is not None
        for point in points_of(repository, "work.cpu_time_total", "--tables", "tables")
    ]
    assert known == [True, True]
    assert opprof(repository, *tables, "--compact").stdout == "0 files joined, 1 month of repositories\n"
    assert "--where needs tables" in opprof(repository, "history", "work.count", "--where", "dirty").stderr
    assert "pip install" not in opprof(repository, *tables, "no_such_test").stderr
