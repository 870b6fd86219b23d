"""The unchanged examples pass against their own baseline: run after run, in parallel, in random order."""

import shutil
from pathlib import Path

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project

# By mode: plugins, options, and the number of runs unless all are requested.
MODES = {
    "in order": (("opprof",), (), 1),
    "in random order": (("opprof", "randomly"), (), 1),
    "two workers": (("opprof", "xdist"), ("-n", "2"), 1),
}
ALL_RUNS = 50


@pytest.fixture(scope="module")
def examples(repository: Path, make_project: MakeProject) -> Project:
    """A copy of the examples with a baseline."""
    project = make_project("examples")
    shutil.copytree(
        repository / "examples",
        project.folder,
        ignore=shutil.ignore_patterns("demo.py", "__pycache__", ".*"),
        dirs_exist_ok=True,
    )
    saved = project.pytest("--opprof-save=main", plugins=("opprof",))
    assert saved.exit_code == 0
    assert not any("not certified" in line for line in saved.told)
    return project


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_unchanged_examples_pass(examples: Project, mode: str, *, large_counts: bool) -> None:
    plugins, options, some_runs = MODES[mode]
    for _ in range(ALL_RUNS if large_counts else some_runs):
        session = examples.pytest("--opprof-baseline=main", *options, plugins=plugins)
        assert session.exit_code == 0
        assert [test.unstable for test in session.run.tests if test.unstable] == []
        session.lines.fnmatch_lines(["* passed * nothing dropped"])
