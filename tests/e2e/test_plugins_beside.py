"""With each of these plugins, unchanged code passes and one more range fails the session."""

import json
from importlib import metadata
from pathlib import Path

import pytest
from e2e.plugins_beside import PLUGINS, Beside
from e2e.project import Project, Session


def installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def verdicts(project: Project) -> dict[str, str]:
    document = json.loads((project.folder / "comparison.json").read_text())
    return {test["node_id"]: test["verdict"] for test in document["tests"] if test["head"] is not None}


@pytest.mark.slow
@pytest.mark.parametrize("beside", PLUGINS, ids=lambda beside: beside.package)
def test_other_plugins_keep_the_verdicts(project: Project, beside: Beside) -> None:
    if not installed(beside.package):
        pytest.skip(f"{beside.package} is not installed: pip install 'pytest-opprof[beside]'")
    for name, text in beside.files.items():
        project.write(name, text)
    project.write("test_it.py", beside.text)

    def run(*arguments: str) -> Session:
        report = "--opprof-report=json:comparison.json"
        return project.pytest(*beside.arguments, report, *arguments, plugins=(beside.plugin,), timeout=240)

    without = run("--opprof=off")
    if without.exit_code:
        pytest.skip(f"{beside.package} does not work with pytest {pytest.__version__}, without us too")
    saved = run("--opprof-save=main")
    assert saved.exit_code == 0
    assert not any("not certified" in line for line in saved.told)
    same = run("--opprof-baseline=main")
    assert same.exit_code == 0
    unchanged = verdicts(project)
    assert len(unchanged) >= 2
    assert set(unchanged.values()) == {"pass"}
    project.replace("test_it.py", "MORE = 0", "MORE = 1")
    more = run("--opprof-baseline=main")
    assert more.exit_code == pytest.ExitCode.TESTS_FAILED
    assert verdicts(project) == dict.fromkeys(unchanged, "regressed")
    assert set(more.outcomes.values()) == {"failure"}


def test_page_lists_the_tested_plugins(repository: Path) -> None:
    rows = (repository / "docs" / "plugins.md").read_text(encoding="utf-8").splitlines()
    for beside in PLUGINS:
        assert f"| {beside.package} | {beside.what} |" in rows, beside.package


def test_extra_installs_the_tested_plugins(repository: Path) -> None:
    text = (repository / "pyproject.toml").read_text(encoding="utf-8")
    for beside in PLUGINS:
        assert f'"{beside.package}>=' in text, beside.package
