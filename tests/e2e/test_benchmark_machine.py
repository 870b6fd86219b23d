"""pytest-benchmark's machine information is read once and not changed."""

import json

import pytest
from e2e.benchmarking import BENCHMARK, GATED, QUICK
from e2e.project import Project

ASKED = """\
    import pytest

    @pytest.hookimpl(tryfirst=False)
    def pytest_benchmark_generate_machine_info(config):
        with open(config.rootpath / "asked.log", "a") as log:
            print("asked", file=log)
        return {"node": "here", "cpu": {"brand_raw": "A CPU"}, "added": []}

    def pytest_benchmark_update_machine_info(config, machine_info):
        machine_info["added"].append("mine")
"""


@pytest.mark.slow
def test_machine_info_is_read_once_and_unchanged(project: Project) -> None:
    project.write("conftest.py", ASKED)
    project.write("test_it.py", GATED)
    before = project.pytest(
        *QUICK, "--benchmark-save=one", "--opprof=off", plugins=BENCHMARK, writes_run=False
    )
    assert before.exit_code == 0
    (project.folder / "asked.log").unlink()
    session = project.pytest(
        *QUICK,
        "--benchmark-compare",
        "--benchmark-save=two",
        "--benchmark-json=three.json",
        plugins=BENCHMARK,
    )
    assert session.exit_code == 0
    assert (project.folder / "asked.log").read_text() == "asked\n"
    assert "machine_info is different" not in session.stdout + session.stderr
    documents = [*project.folder.glob(".benchmarks/*/0002_two.json"), project.folder / "three.json"]
    for path in documents:
        written = json.loads(path.read_text())
        assert written["machine_info"] == {"node": "here", "cpu": {"brand_raw": "A CPU"}, "added": ["mine"]}
        assert written["opprof"]["run_id"] == session.run.run_id
    assert len(documents) == 2
    assert session.run.environment.details["cpu"] == "A CPU"


def test_machine_info_is_not_read_without_need(project: Project) -> None:
    project.write("conftest.py", ASKED)
    project.write("test_it.py", GATED)
    assert project.pytest(*QUICK, plugins=BENCHMARK).exit_code == 0
    assert not (project.folder / "asked.log").exists()
