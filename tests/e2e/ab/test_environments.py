"""Each side of an A/B runs its own code, in its own environment if requested."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from e2e.ab.experiments import ab, experiments, nothing_left, temporary
from e2e.project import OWN_PYTHON, Project, made_environment

from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.timing.document import read_judged


def test_failed_base_build_shows_its_last_lines(project: Project) -> None:
    told = ab(
        project, "HEAD", "--setup", 'echo building; test $OPPROF_SIDE = head || { echo "no cc"; exit 3; }'
    )
    assert told.code == 9
    first, *others = told.stderr.splitlines()
    assert first.startswith("opprof: the base does not build: `echo building;")
    assert first.endswith("exit code 3:")
    assert others == ["building", "no cc"]
    assert (experiments(project), nothing_left(project)) == ([], True)


def test_a_setup_that_changes_the_head_is_named_before_anything_runs(project: Project) -> None:
    project.write("lock.txt", "1")
    project.commit()
    setup = "test $OPPROF_SIDE = base || { echo 2 > lock.txt; touch made.py; }"
    told = ab(project, "HEAD", "tests/absent.py", "--setup", setup)
    assert told.code == 9
    assert told.stderr.startswith(
        f"opprof: `{setup}` changed the head's files: lock.txt, made.py. Start again; "
    )
    assert (experiments(project), nothing_left(project)) == ([], True)
    again = ab(project, "HEAD", "tests/absent.py", "--setup", setup)
    assert again.stderr.startswith("opprof: pytest cannot collect the tests"), "the same content is no change"


@pytest.mark.slow
def test_a_base_that_imports_the_heads_code_is_refused(project: Project) -> None:
    project.replace("pytest.ini", "pythonpath = .", f"pythonpath = {project.folder}")
    project.commit()
    told = ab(project, "HEAD")
    assert told.code == 9
    assert told.stderr.startswith(
        f"opprof: the base's tests import work from the head: {project.folder}/work.py"
    )


def in_src(project: Project) -> None:
    """Put the program where pytest does not find it on its own."""
    (project.folder / "src").mkdir()
    project.git("mv", "work.py", "src/work.py")
    project.replace("pytest.ini", "pythonpath = .", "")
    project.write(".gitignore", ".venv\n.opprof\n")
    project.commit()


def installed(project: Project, folder: Path) -> dict[str, str]:
    """Variables that import `work` as installers leave it: from a copy of the project."""
    info = folder / "work-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "work.py").write_text((project.folder / "src" / "work.py").read_text())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: work\nVersion: 1.0\n")
    (info / "RECORD").write_text("work.py,,\n")
    (info / "direct_url.json").write_text(json.dumps({"url": project.folder.as_uri(), "dir_info": {}}))
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])}


@pytest.mark.slow
def test_a_copy_that_is_installed_for_both_sides_is_refused(project: Project, tmp_path: Path) -> None:
    in_src(project)
    told = ab(project, "HEAD", env=installed(project, tmp_path / "site"))
    assert told.code == 9
    assert told.stderr.startswith(
        "opprof: the base's tests import work from a copy of the project that is installed for all commits: "
        f"{tmp_path}/site/work.py. Install it in editable mode, or give each its own environment"
    )


@pytest.mark.slow
def test_each_side_has_an_environment_of_its_own(project: Project, tmp_path: Path) -> None:
    in_src(project)
    project.replace("src/work.py", "range(30_000)", "range(90_000)")
    document = tmp_path / "ab.json"
    told = ab(
        project,
        *("HEAD", "--setup", made_environment("src/work.py"), "--python", OWN_PYTHON, "-k", "other"),
        *("--processes=8", "--steps=3", "--max-time=0", "--max-noise=10000%", "-o", str(document)),
        env={"VIRTUAL_ENV": str(tmp_path)},
    )
    assert told.code == 1
    judged = read_judged(document)
    assert isinstance(judged, TimeComparison)
    (test,) = judged.tests
    assert test.verdict == "regressed", "each side has run its own code"
    assert nothing_left(project)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "python", "sentence"),
    [
        ("true", OWN_PYTHON, "the base has no interpreter {base}/.venv/bin/python: let --setup make it"),
        ("true", "python-nobody-has", "the base has no interpreter python-nobody-has: let --setup make it"),
        ("true", "./tests", "the base's interpreter {base}/tests cannot be run: Permission denied"),
        (
            f"{sys.executable} -m venv --without-pip .venv",
            OWN_PYTHON,
            "the base's interpreter {base}/.venv/bin/python has no pytest-opprof: "
            "let --setup install pytest-opprof==",
        ),
    ],
)
def test_unusable_environment_is_reported(project: Project, setup: str, python: str, sentence: str) -> None:
    told = ab(project, "HEAD", "--setup", setup, "--python", python)
    assert told.code == 9
    pattern = re.escape(sentence).replace(re.escape("{base}"), re.escape(str(temporary(project))) + "/[^ ]+")
    assert re.match(f"opprof: {pattern}", told.stderr)
    assert (experiments(project), nothing_left(project)) == ([], True)


@pytest.mark.slow
def test_python_path_leads_each_side_to_its_own_code(project: Project) -> None:
    in_src(project)
    path = os.pathsep.join([str(project.folder / "src"), os.environ["PYTHONPATH"]])
    told = ab(project, "HEAD", "--setup", "test $OPPROF_SIDE = base", env={"PYTHONPATH": path})
    assert "the head does not build" in told.stderr, "the base is built first"
    project.replace(
        "tests/test_it.py", "work.other()", "work.other(); assert work.__file__.startswith(os.getcwd())"
    )
    project.replace("tests/test_it.py", "import pytest", "import os, pytest")
    few = ("-k", "other", "--processes=8", "--steps=1", "--max-time=0")
    told = ab(project, "HEAD", *few, "--fail-on=none", env={"PYTHONPATH": path})
    assert (told.code, told.stderr) == (0, "")
    told.lines.fnmatch_lines(["test_other *", "* 8 processes a side"])
