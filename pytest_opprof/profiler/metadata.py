"""The metadata of a trace file: the user's values, and the profiler's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping


class TraceMetadata:
    """Names and JSON values for traces, checked when they are set, so that no trace is broken JSON."""

    def __init__(self) -> None:
        self.preset_values: dict[str, str] = {}
        self._values: dict[str, str] = {}

    def preset(self, key: str, value: str) -> None:
        """Set a JSON value that `add_json` and `add` override."""
        self.preset_values[key] = _checked(key, value)

    def add_json(self, key: str, value: str) -> None:
        """Set a JSON value.

        Raises:
            ValueError: It is not JSON.
        """
        self._values[key] = _checked(key, value)

    def add(self, key: str, value: str) -> None:
        """Set a string."""
        self._values[key] = json.dumps(value)

    def merged(self, known: Mapping[str, object]) -> dict[str, str]:
        """All values as JSON text; the user's override the profiler's."""
        return {key: json.dumps(value) for key, value in known.items()} | self.preset_values | self._values


def distributed_info() -> dict[str, object] | None:
    """The place of this process in a torch.distributed job, and its process groups; None outside of one.

    Trace analysers read the rank from it. Torch is not imported for this: a process in a job has imported it.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    info = {
        "backend": distributed.get_backend(),
        "rank": distributed.get_rank(),
        "world_size": distributed.get_world_size(),
    }
    if hasattr(distributed, "get_pg_count"):
        info["pg_count"] = distributed.get_pg_count()
    if hasattr(distributed.distributed_c10d, "_get_all_pg_configs"):
        info["pg_config"] = distributed.distributed_c10d._get_all_pg_configs()  # noqa: SLF001  # as torch's profile
    if info["backend"] == "nccl":
        info["nccl_version"] = ".".join(str(part) for part in sys.modules["torch"].cuda.nccl.version())
    return info


def _checked(key: str, value: str) -> str:
    try:
        json.loads(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"metadata {key!r} is not JSON: {value!r} ({error}); a plain string goes to add_metadata"
        ) from error
    return value
