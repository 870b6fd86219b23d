"""Share the description of the machine with pytest-benchmark's files.

Its `machine_info` is unchanged: pytest-benchmark warns of every stored file whose machine differs in any
field, so with a field of ours it would warn of all files stored without us.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_opprof.results.benchmark_run import details_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_opprof.plugin.session import OpprofSession

_FOUND: Final = pytest.StashKey[dict[str, Any]]()
_STORES: Final = ("save", "autosave", "json")
_KEY: Final = "opprof"


def machine_info(config: pytest.Config, *, without: object) -> dict[str, Any]:
    """What pytest-benchmark knows of this machine; asked once, and copied each time.

    Args:
        without: The plugin that asks, which is not asked in turn.
    """
    if _FOUND not in config.stash:
        ask = config.pluginmanager.subset_hook_caller("pytest_benchmark_generate_machine_info", [without])
        config.stash[_FOUND] = ask(config=config)
    # pytest-benchmark's plugins add to the answer.
    return copy.deepcopy(config.stash[_FOUND])


def machine_details(config: pytest.Config) -> Mapping[str, str]:
    """The same for our document, if pytest-benchmark asks for it anyway."""
    theirs = getattr(config, "_benchmarksession", None)
    is_stored = bool(getattr(theirs, "benchmarks", None)) and any(
        getattr(theirs, name, None) for name in _STORES
    )
    if not is_stored and _FOUND not in config.stash:
        return {}
    return details_of(config.hook.pytest_benchmark_generate_machine_info(config=config))


def leave_environment(output_json: dict[str, Any], session: OpprofSession) -> None:
    """Add the run's id and its environment's fingerprint to pytest-benchmark's file.

    Another file gets the same.
    """
    run = session.run_of(())
    output_json[_KEY] = {"run_id": run.run_id, "fingerprint": dict(run.environment.fingerprint)}
