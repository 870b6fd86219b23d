"""A measuring process's report on the modules that its tests imported."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_opprof.plugin.listing import copies_of_projects, files_of_modules


def test_module_without_a_place_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("made")
    made.__file__ = "_made.py"  # like that of torch.classes, which is not a file of the project
    monkeypatch.setitem(sys.modules, "made", made)
    assert "made" not in files_of_modules()


def test_module_has_its_file() -> None:
    assert Path(files_of_modules()["pytest"]).samefile(str(pytest.__file__))


def installed(folder: Path, name: str, *, origin: object) -> dict[str, str]:
    """A distribution with one module as an installer leaves it, imported."""
    module = name.lower().replace("-", "_")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text("")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{module}.py,,\n")
    if origin is not None:
        (info / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
    return {module: str(folder / f"{module}.py")}


@pytest.mark.parametrize(
    ("origin", "copies"),
    [
        pytest.param({"url": "file:///a%20b", "dir_info": {}}, {"made_up": "/a b"}, id="folder"),
        pytest.param({"url": "file:///a/b.whl", "archive_info": {}}, {"made_up": "/a/b.whl"}, id="archive"),
        pytest.param({"url": "file:///a", "dir_info": {"editable": True}}, {}, id="editable"),
        pytest.param({"url": "https://host/a", "vcs_info": {}}, {}, id="another's"),
        pytest.param(None, {}, id="not noted"),
        pytest.param("{", {}, id="damaged"),
        pytest.param([], {}, id="no object"),
    ],
)
def test_copy_of_a_project_has_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: object, copies: dict[str, str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "site")
    modules = {**files_of_modules(), **installed(tmp_path / "site", "Made-Up", origin=origin)}
    assert {"made_up": copies_of_projects(modules, root=tmp_path).get("made_up")} == {
        "made_up": copies.get("made_up")
    }


def test_copies_after_other_distributions_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = {"url": "file:///a", "dir_info": {}}
    monkeypatch.syspath_prepend(tmp_path / "second")
    monkeypatch.syspath_prepend(tmp_path / "first")
    modules = installed(tmp_path / "first", "Other", origin=None)
    modules |= installed(tmp_path / "second", "Made-Up", origin=origin)
    assert copies_of_projects(modules, root=tmp_path) == {"made_up": "/a"}


@pytest.mark.parametrize(
    ("project", "copies"),
    [
        ('[project]\nname = "made.up"', {"made_up": ""}),
        ('[project]\nname = "another"', {}),
        ("[project]\nname = 1", {}),
        ("[tool.other]", {}),
        ("project = 1", {}),
        ("[", {}),
    ],
)
def test_tested_project_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: str, copies: dict[str, str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "site")
    (tmp_path / "pyproject.toml").write_text(project)
    modules = installed(tmp_path / "site", "Made-Up", origin=None)
    assert copies_of_projects(modules, root=tmp_path) == copies


def test_broken_installation_is_not_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path / "site")
    modules = installed(tmp_path / "site", "Made-Up", origin=None)
    (tmp_path / "site" / "made_up-1.0.dist-info" / "METADATA").unlink()
    assert copies_of_projects(modules, root=tmp_path) == {}
