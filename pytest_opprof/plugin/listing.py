"""What a pytest process collects, and how to start another like it: for `experiment`.

It is loaded by name (``PYTEST_PLUGINS``) in the processes of ``opprof ab`` and ``opprof bisect`` alone, and
writes one JSON file for the process that started them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_opprof.plugin.arguments import as_argument, fresh_arguments, own_options
from pytest_opprof.results.names import canonical_node_id

# Where to write it; a file that is written is whole, as its reader waits for this process to end.
LIST_TO: Final = "OPPROF_LIST_TO"
_COLLECTED: Final = pytest.StashKey[list[pytest.Item]]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Keep all items, before anybody deselects one."""
    config.stash[_COLLECTED] = list(items)
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the list, at the end: by then all modules are imported that the tests import."""
    path = os.environ.get(LIST_TO)
    collected = session.config.stash.get(_COLLECTED, None)
    if not path or collected is None:
        return
    config, chosen = session.config, set(session.items)
    listing = {
        "root": str(config.rootpath),
        "options": list(own_options(config)),
        "arguments": fresh_arguments(config, cache=str(Path(path).parent / "cache")),
        "sys_path": [entry for entry in sys.path if entry],
        "modules": files_of_modules(),
        "tests": [_test(item, is_chosen=item in chosen) for item in collected],
    }
    Path(path).write_text(json.dumps(listing), encoding="ascii")


def _test(item: pytest.Item, *, is_chosen: bool) -> dict[str, Any]:
    return {
        "node_id": canonical_node_id(item.nodeid),
        "argument": as_argument(item.config, item.nodeid),
        "path": item.nodeid.partition("::")[0],
        "is_marked": item.get_closest_marker("profile") is not None,
        "is_chosen": is_chosen,
    }


def files_of_modules() -> dict[str, str]:
    """The file of each imported module that has one, by the module's name."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # A relative one is no place: torch.classes says `_classes.py`, wherever it is asked.
        if isinstance(file, str) and os.path.isabs(file):  # noqa: PTH117 - one of thousands
            found[name] = file
    return found
