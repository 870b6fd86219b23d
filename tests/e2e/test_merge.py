"""``opprof merge``: runs of real sessions that divided a project's tests."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from e2e.project import Project

from pytest_opprof.fleet.difference import compare
from pytest_opprof.fleet.ingest import ingest
from pytest_opprof.fleet.manifest import Status
from pytest_opprof.fleet.tables import windows_of
from pytest_opprof.results.files import read_run

TEST = """\
    import os

    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile(warmup=0, active=2)
    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_it(count):
        for _ in range(count + int(os.environ.get("MORE", 0))):
            with record_function("work"):
                pass
"""


def merge(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return project.python("-m", "pytest_opprof.cli.main", "merge", *arguments)


@pytest.fixture
def sharded(project: Project) -> Project:
    """Two of three shards have run, as on GitLab."""
    project.write("test_it.py", TEST)
    for shard in (1, 2):
        session = project.pytest(
            f"test_it.py::test_it[{shard}]",
            f"--opprof-json=shard-{shard}.json",
            env={"CI_NODE_INDEX": str(shard), "CI_NODE_TOTAL": "3"},
            writes_run=False,
        )
        assert session.exit_code == 0
    return project


@pytest.mark.slow
def test_missing_shard_and_test_fail_the_merge(sharded: Project) -> None:
    listed = sharded.pytest("--opprof=only", "--collect-only", "-q", writes_run=False)
    sharded.write("collected.txt", listed.stdout)
    done = merge(sharded, "shard-1.json", "shard-2.json", "-o", "all.json", "--collected=collected.txt")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "missing: shard 3 of 3",
        "missing: 1 of 3 collected tests: test_it.py::test_it[3]",
        "all.json: 2 tests of 2 runs",
    ]
    run = read_run(sharded.folder / "all.json")
    assert run.notes == ("missing: shard 3 of 3", "missing: 1 of 3 collected tests: test_it.py::test_it[3]")
    assert [test.node_id for test in run.tests] == ["test_it.py::test_it[1]", "test_it.py::test_it[2]"]


def test_whole_set_passes(sharded: Project) -> None:
    sharded.pytest("test_it.py::test_it[3]", "--opprof-json=shard-3.json", writes_run=False)
    done = merge(sharded, *(f"shard-{n}.json" for n in (1, 2, 3)), "-o", "all.json", "--expect=3")
    assert (done.returncode, done.stdout) == (0, "all.json: 3 tests of 3 runs\n")


@pytest.mark.slow
def test_disagreeing_ranks_are_reported(project: Project) -> None:
    project.write("test_it.py", TEST)
    for rank in ("0", "1"):
        project.pytest(
            "test_it.py::test_it[1]",
            "--opprof-json=rank-{rank}.json",
            env={"RANK": rank, "WORLD_SIZE": "2", "MORE": rank},
            writes_run=False,
        )
    done = merge(project, "rank-0.json", "rank-1.json", "-o", "all.json")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == (
        "test_it.py::test_it[1] on rank 0 and rank 1: they disagree in ranges.count, work.count, "
        "so these are not judged"
    )
    (test,) = read_run(project.folder / "all.json").tests
    assert test.unstable == ("ranges.count", "work.count")
    alone = merge(project, "rank-1.json", "-o", "all.json")
    assert alone.stdout.splitlines()[0] == "missing: rank 0 of 2"


@pytest.mark.slow
def test_rank_runs_form_a_fleet_job(project: Project, tmp_path: Path) -> None:
    project.write("test_it.py", TEST)
    for job, more in (("base", "0"), ("head", "1")):
        for rank in ("0", "1"):
            project.pytest(
                f"--opprof-json={job}/rank-{{rank}}.json",
                env={"RANK": rank, "WORLD_SIZE": "2", "MORE": more if rank == "1" else "0"},
                writes_run=False,
            )
        with ThreadPoolExecutor(1) as executor:
            files = ingest(str(project.folder / job), str(tmp_path / "tables"), job=job, executor=executor)
        assert [(one.rank, one.status, one.steps) for one in files] == [
            (rank, Status.OK, 6) for rank in (0, 1)
        ]
    found = compare(*(windows_of(str(tmp_path / "tables"), job) for job in ("base", "head")))
    assert found.problems == ()
    assert sorted((op.name, op.base, op.head, op.ranks) for op in found.failures) == [
        (f"test_it.py::test_it[{n}]: work", (n, n), (n, n + 1), 1) for n in (1, 2, 3)
    ]


@pytest.mark.slow
def test_incompatible_runs_are_refused(sharded: Project) -> None:
    sharded.git("init", "-q", "-b", "main")
    sharded.commit()
    sharded.pytest("test_it.py::test_it[3]", "--opprof-json=later.json", writes_run=False)
    done = merge(sharded, "shard-1.json", "later.json", "-o", "all.json")
    assert done.returncode == 2
    assert "join only runs of one commit" in done.stderr
    assert not (sharded.folder / "all.json").exists()
    sharded.write("empty.txt", "no tests ran\n")
    assert (
        "empty.txt names no test" in merge(sharded, "shard-1.json", "-o", "x", "--collected=empty.txt").stderr
    )
