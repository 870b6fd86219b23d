"""Edited lines are recognized in files outside the working folder, and if a test leaves it."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Session

from pytest_opprof.cli.main import main

pytestmark = pytest.mark.slow

MODULE = """\
    import torch

    def evaluated(x):
        return torch.relu(x)

    def counted(n):
        return sum([one * one for one in range(n)])
"""
TESTS = """\
    import sys, pytest, torch
    from pathlib import Path

    here = Path(__file__).parent
    sys.path += [str(here), str(here.parent / "core"), str(here / "link")]
    import inside, beside, linked

    pytestmark = pytest.mark.profile

    def both(module):
        module.evaluated(torch.ones(4))
        module.counted(100)

    def test_leaves(tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        both(inside)

    def test_beside(): both(beside)

    def test_linked(): both(linked)
"""
# By test: the edited file, and the path of it that the failure names.
FILES = {
    "test_leaves": ("app/inside.py", "inside.py"),
    "test_beside": ("core/beside.py", "{folder}/core/beside.py"),
    "test_linked": ("core/more/linked.py", "link/linked.py"),
}


@pytest.fixture(scope="module")
def compared(make_project: MakeProject, torch_installed: None) -> Session:
    project = make_project("elsewhere")
    project.git("init", "-q")
    for file, _ in FILES.values():
        project.write(file, MODULE)
    project.write("app/test_it.py", TESTS)
    (project.folder / "app" / "link").symlink_to("../core/more")
    project.commit()
    project.pytest("--opprof-save=main", cwd="app")
    for file, _ in FILES.values():
        project.replace(file, "torch.relu(x)", "torch.relu(torch.relu(x))")
        project.replace(file, "range(n)", "range(9 * n)")
    return project.pytest("--opprof-baseline=main", cwd="app", env={"COLUMNS": "300"})


@pytest.mark.parametrize("test", FILES)
def test_edited_line_is_recognized(compared: Session, test: str) -> None:
    file = FILES[test][1].format(folder=compared.document.parents[1] / "project")
    failure = compared.failures[test].splitlines()
    where = next(line for line in failure if line.startswith(f"{file}:4 in evaluated"))
    assert where.endswith("changed in this branch")
    assert f"rose in counted.<locals>.<listcomp>, {file} (+5600)" in compared.failures[test]
    assert compared.result(test).lines[f"evaluated, {file}:4"] == "return torch.relu(torch.relu(x))"


def test_edited_line_is_recognized_by_a_later_comparison(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make_project("later")
    project.git("init", "-q", "-b", "main")
    project.write(
        "app/test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.profile
        def test_it():
            with record_function("load"): pass
        """,
    )
    project.commit()
    project.pytest("--opprof-save=main", cwd="app")
    line = 'with record_function("load"): pass\n'
    project.replace("app/test_it.py", line, f"{line}    {line}")
    project.commit()
    head = str(project.pytest(cwd="app").document)
    monkeypatch.chdir(project.folder / "app")
    for arguments in (["compare", "main", head], ["report", "--base=main", f"--head={head}"]):
        capsys.readouterr()
        main(arguments)
        assert "changed in this branch" in capsys.readouterr().out
    project.git("checkout", "-q", "HEAD~1")
    assert main(["compare", "main", head]) == 1
    assert "changed in this branch" not in capsys.readouterr().out, "other files are checked out"
