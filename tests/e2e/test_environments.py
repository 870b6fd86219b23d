"""A baseline from elsewhere: other hardware, another clock, other tests, a damaged number."""

import json
import platform
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project

from pytest_opprof.capture.cuda import has_driver

TEST = """\
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile
    def test_it():
        with record_function("work"):
            pass
"""


@pytest.fixture(scope="module")
def recorded(make_project: MakeProject) -> Project:
    """A project with a baseline, to be copied."""
    project = make_project("recorded")
    project.write("test_it.py", TEST)
    assert project.pytest("--opprof-save=main").exit_code == 0
    return project


@pytest.fixture
def saved(recorded: Project, tmp_path: Path) -> Project:
    """A copy of it, because each test damages its own."""
    return Project(shutil.copytree(recorded.folder, tmp_path / "project"))


def edit(project: Project, change: Callable[[dict[str, Any]], object]) -> None:
    """Edit the stored baseline."""
    (path,) = project.stored()
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def fingerprint(**fields: str) -> Callable[[dict[str, Any]], object]:
    return lambda document: document["environment"]["fingerprint"].update(fields)


def test_other_interpreter_is_inconclusive_and_reported(saved: Project) -> None:
    edit(saved, fingerprint(python="2.7"))
    session = saved.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    told = " ".join(session.failures["test_it"].split())
    assert "INCONCLUSIVE: ranges, total: measured in another environment: Python 2.7 -> 3." in told


@pytest.mark.slow
def test_nearest_run_of_this_environment_is_preferred(project: Project) -> None:
    project.git("init", "-q", "-b", "main")
    project.write("test_it.py", TEST)
    commits = [project.commit(), project.commit()]
    for commit in commits:
        project.git("checkout", "-q", commit)
        project.pytest("--opprof-save=main")
    (path,) = (path for path in project.stored() if path.name.startswith(commits[1]))
    document = json.loads(path.read_text())
    document["environment"]["fingerprint"]["python"] = "2.7"
    path.write_text(json.dumps(document))
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    assert f"baseline main@{commits[0][:7]} (nearest ancestor" in session.stdout
    (told,) = (line for line in session.told if "another environment" in line)
    assert told.startswith(
        f"opprof: main@{commits[1][:7]} was measured in another environment (Python 2.7 -> 3."
    )
    assert told.endswith(f"): using main@{commits[0][:7]}, the nearest run that matches")


def test_other_hardware_ungates_only_times(saved: Project) -> None:
    edit(saved, fingerprint(cpu_model="Another CPU", machine="another", cpu_count="1024"))
    session = saved.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    done = saved.python("-m", "pytest_opprof.cli.main", "compare", "main", str(session.document), "-v")
    assert done.returncode == 0


def test_nan_is_refused_and_named(saved: Project) -> None:
    (path,) = saved.stored()
    text = path.read_text()
    path.write_text(text.replace('"ranges.count":1', '"ranges.count":NaN'))
    session = saved.pytest("--opprof-baseline=main", writes_run=False)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert any("NaN is not a JSON number. The file was not used" in line for line in session.told)


def test_a_total_that_vanished_is_inconclusive(saved: Project) -> None:
    edit(saved, lambda document: document["tests"][0]["totals"].update({"cpu_memory.allocated": 7}))
    session = saved.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "allocated memory, total" in session.failures["test_it"]
    assert "INCONCLUSIVE" in session.failures["test_it"]


@pytest.mark.slow
def test_baseline_without_a_common_test_is_reported(saved: Project) -> None:
    (saved.folder / "test_it.py").rename(saved.folder / "test_other.py")
    session = saved.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED, "its file was collected, and is gone"
    sentence = "opprof: nothing was compared: main has none of the tests that ran"
    assert sentence in session.told
    selected = saved.pytest("--opprof-baseline=main", "test_other.py")
    assert selected.exit_code == 0
    assert sentence in selected.told
    selected.lines.fnmatch_lines(["1 new * nothing dropped * 1 other test not run"])


@pytest.mark.slow
def test_baseline_from_the_future_is_reported(saved: Project) -> None:
    later = (datetime.now(UTC) + timedelta(days=2, hours=1)).isoformat(timespec="seconds")
    edit(saved, lambda document: document.update(created=later))
    session = saved.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    assert "baseline main (latest, dated 2 days ahead of this clock)" in session.stdout


@pytest.mark.slow
@pytest.mark.skipif(has_driver(), reason="there is a driver on this machine")
def test_why_a_source_did_not_run_stands_in_the_document(saved: Project) -> None:
    capture = "--opprof-capture=ranges,ops,cuda"
    session = saved.pytest(capture)
    result = session.result("test_it")
    assert "cuda" not in result.sources
    gated = saved.pytest("--opprof-baseline=main", "--opprof-gate=kernels.count=exact", capture)
    told = " ".join(gated.failures["test_it"].split())
    assert f"needs cuda capture, which did not run: {result.unheard['cuda']}" in told


@pytest.mark.slow
@pytest.mark.usefixtures("torch_installed")
def test_settings_of_a_test_leave_earlier_tests_comparable(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest
        import torch

        pytestmark = pytest.mark.profile

        def test_before(): torch.ones(4) * 2
        def test_sets(): torch.use_deterministic_algorithms(True); torch.ones(4) * 2
        """,
    )
    assert project.pytest("--opprof-save=main", "--opprof-save-processes=1").exit_code == 0
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    assert "determinism" not in session.result("test_before").settings
    assert session.result("test_sets").settings["determinism"] == "deterministic"
    project.replace("test_it.py", "torch.use_deterministic_algorithms(True); ", "")
    changed = project.pytest("--opprof-baseline=main")
    assert "determinism flags deterministic -> unknown" in " ".join(changed.failures["test_sets"].split())


WITH_MEMORY = TEST.replace("profile", "profile(profile_memory=True)")
MEMORY = "--opprof-capture=ranges,memory-python"


@pytest.mark.slow
def test_imports_of_other_tests_leave_tests_comparable(project: Project) -> None:
    pytest.importorskip("numpy")
    project.write("test_it.py", WITH_MEMORY)
    assert project.pytest("--opprof-save=main", MEMORY).exit_code == 0
    project.write("test_before.py", "import numpy\n\ndef test_it(): pass")
    session = project.pytest("--opprof-baseline=main", MEMORY, "test_before.py", "test_it.py")
    assert session.exit_code == 0, session.stdout
    (told,) = (line for line in session.told if "with the same values" in line)
    assert "BLAS of NumPy unknown -> " in told


@pytest.mark.slow
def test_malloc_of_another_allocator_is_inconclusive(project: Project) -> None:
    project.write("test_it.py", WITH_MEMORY)
    malloc = "--opprof-capture=ranges,memory-malloc"
    assert project.pytest("--opprof-save=main", malloc, "--opprof-save-processes=1").exit_code == 0
    session = project.pytest("--opprof-baseline=main", malloc, env={"PYTHONMALLOC": "malloc"})
    if "memory-malloc" not in session.result("test_it").sources:
        pytest.skip("malloc cannot be watched here")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "PYTHONMALLOC unknown -> malloc" in " ".join(session.failures["test_it"].split())


@pytest.mark.slow
@pytest.mark.usefixtures("torch_installed")
def test_other_threads_pass_where_values_are_equal(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import os

        import pytest
        import torch

        torch.set_num_threads(int(os.environ["THREADS"]))

        @pytest.mark.profile(profile_memory=True)
        def test_it():
            torch.empty(int(os.environ["THREADS"]) if "MORE" in os.environ else 1)
        """,
    )
    assert project.pytest("--opprof-save=main", env={"THREADS": "1"}).exit_code == 0
    same = project.pytest("--opprof-baseline=main", env={"THREADS": "2"})
    assert same.exit_code == 0, same.stdout
    (told,) = (line for line in same.told if "with the same values" in line)
    assert told.endswith("threads of torch 1 -> 2 (1 test)")
    other = project.pytest("--opprof-baseline=main", env={"THREADS": "64", "MORE": ""})
    assert other.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "INCONCLUSIVE" in other.failures["test_it"]
    assert "threads of torch 1 -> 64" in " ".join(other.failures["test_it"].split())


MOCKING = """\
    import importlib.metadata, platform
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile
    def test_mocking(monkeypatch):
        for name in ("machine", "python_implementation", "python_version"):
            monkeypatch.setattr(platform, name, lambda: "3.0.0")
        monkeypatch.setattr(importlib.metadata, "version", lambda _: "9.9.9")
        with record_function("work"):
            pass

    @pytest.mark.profile
    def test_plain():
        with record_function("work"):
            pass
"""


def test_the_environment_is_not_what_a_test_mocks(project: Project) -> None:
    project.write("test_it.py", MOCKING)
    run = project.pytest().run
    assert "9.9.9" not in run.environment.fingerprint.values()
    assert run.opprof_version != "9.9.9"
    assert {test.settings["libraries"].partition(" ")[0] for test in run.tests} == {platform.python_version()}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["here", "in a worker"])
def test_mocks_make_no_other_environment(project: Project, workers: tuple[str, ...]) -> None:
    project.write("test_it.py", MOCKING)
    plugins = ("xdist",) if workers else ()
    assert project.pytest("--opprof-save=main", *workers, plugins=plugins).exit_code == 0
    assert project.pytest("--opprof-baseline=main").exit_code == 0
