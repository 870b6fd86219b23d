"""What a pytest process collects, and how to start another like it: for `experiment`.

Only the processes of ``opprof ab`` and ``opprof bisect`` load it, by name (``PYTEST_PLUGINS``). It writes one
JSON file for the process that started them.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
import tomllib
from collections.abc import Generator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pytest

from pytest_opprof.plugin.arguments import fresh_arguments, own_options
from pytest_opprof.results.names import canonical_node_id

# Its path; the file is complete, because its reader waits for this process to end.
LIST_TO: Final = "OPPROF_LIST_TO"
_COLLECTED: Final = pytest.StashKey[list[pytest.Item]]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Keep all items, before any is deselected."""
    config.stash[_COLLECTED] = list(items)
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the list at the end, when the tests have imported all their modules."""
    path = os.environ.get(LIST_TO)
    collected = session.config.stash.get(_COLLECTED, None)
    if not path or collected is None:
        return
    config, chosen, modules = session.config, set(session.items), files_of_modules()
    listing = {
        "root": str(config.rootpath),
        "options": own_options(config),
        "arguments": fresh_arguments(config, folder=Path(path).parent),
        "sys_path": [entry for entry in sys.path if entry],
        "stdlib": sysconfig.get_path("stdlib"),
        "modules": modules,
        "copies": copies_of_projects(modules, root=config.rootpath),
        "gates": list(config.getoption("opprof_gate") or ()),
        "ini_gates": list(config.getini("opprof_gate")),
        "tests": [_test(item, is_chosen=item in chosen) for item in collected],
    }
    Path(path).write_text(json.dumps(listing), encoding="ascii")


def _test(item: pytest.Item, *, is_chosen: bool) -> dict[str, Any]:
    path = item.nodeid.partition("::")[0]
    return {
        "node_id": canonical_node_id(item.nodeid),
        # In a node id it is relative to the root folder; as an argument, to where pytest was started.
        "argument": os.path.relpath(item.config.rootpath / path, item.config.invocation_params.dir),
        "path": path,
        "is_marked": item.get_closest_marker("profile") is not None,
        "is_chosen": is_chosen,
    }


def files_of_modules() -> dict[str, str]:
    """The file of each imported module that has one, by the module's name."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # A relative path is not a place: torch.classes always says `_classes.py`.
        if isinstance(file, str) and os.path.isabs(file):  # noqa: PTH117 - one of thousands
            found[name] = file
    return found


def copies_of_projects(modules: Mapping[str, str], *, root: Path) -> dict[str, str]:
    """The imported modules that come from installed copies of projects, not from their folders.

    By module name, the copy's origin (a folder or archive), as installers record it (PEP 610); "" if they do
    not. The project that the ``pyproject.toml`` of pytest's `root` names is one, wherever its copy is from.
    """
    found: dict[str, str] = {}
    tested = _name_of_project(root)
    for distribution in metadata.distributions():
        source = _installed_from(distribution)
        if source is None or not (source or _normalized(_name_of(distribution)) == tested):
            continue
        files = {os.path.normpath(str(distribution.locate_file(file))) for file in distribution.files or ()}
        found |= {name: source for name, file in modules.items() if os.path.normpath(file) in files}
    return found


def _installed_from(distribution: metadata.Distribution) -> str | None:
    """The path that it was installed from, "" if unknown; None in editable mode."""
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        url = urlsplit(origin.get("url", ""))
        if origin.get("dir_info", {}).get("editable"):
            return None
    except (ValueError, AttributeError):
        return ""
    return unquote(url.path) if url.scheme == "file" else ""


def _name_of(distribution: metadata.Distribution) -> str:
    """Its name; empty if installed wrongly."""
    try:
        return str(distribution.metadata.json.get("name", ""))
    except FileNotFoundError:  # since Python 3.15
        return ""


def _name_of_project(root: Path) -> str | None:
    try:
        name = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _normalized(name) if isinstance(name, str) else None


def _normalized(name: str) -> str:
    """Normalize by PEP 503, so that two spellings are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()
