"""What pytest-benchmark's files say of a machine, shared both ways.

Its `machine_info` stays as it is: pytest-benchmark warns of every stored file whose machine differs in any
field, so that a field of ours would have it warn of all that were stored without us.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_opprof.results.benchmark_machine import details_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_opprof.plugin.session import OpprofSession

_FOUND: Final = pytest.StashKey[dict[str, Any]]()
_STORES: Final = ("save", "autosave", "json")
_KEY: Final = "opprof"


def machine_info(config: pytest.Config, *, without: object) -> dict[str, Any]:
    """What pytest-benchmark knows of this machine; found out once, and a copy each time.

    Args:
        without: The plugin that asks, which is not asked in turn.
    """
    if _FOUND not in config.stash:
        ask = config.pluginmanager.subset_hook_caller("pytest_benchmark_generate_machine_info", [without])
        config.stash[_FOUND] = ask(config=config)
    # pytest-benchmark has its plugins add to what it got.
    return copy.deepcopy(config.stash[_FOUND])


def machine_details(config: pytest.Config) -> Mapping[str, str]:
    """The same for a document of ours, where pytest-benchmark finds it out in any case."""
    theirs = getattr(config, "_benchmarksession", None)
    is_stored = bool(getattr(theirs, "benchmarks", None)) and any(
        getattr(theirs, name, None) for name in _STORES
    )
    if not is_stored and _FOUND not in config.stash:
        return {}
    return details_of(config.hook.pytest_benchmark_generate_machine_info(config=config))


def leave_environment(output_json: dict[str, Any], session: OpprofSession) -> None:
    """Put the run's number and its environment's fingerprint beside all that pytest-benchmark says.

    Told again of another file, it says the same again.
    """
    run = session.run_of(())
    output_json[_KEY] = {"run_id": run.run_id, "fingerprint": dict(run.environment.fingerprint)}
