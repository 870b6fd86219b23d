"""Documents of older schema versions in the shape of today's.

Version 1 had a member for each number of a row. The document is not validated yet: a part of another shape is
left for the schema to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# The members of a version 1 row that are metrics now, and their names.
_METRICS: Mapping[str, str] = {
    "count": "count",
    "views": "views",
    "cpu_time_total_ns": "cpu_time_total",
    "self_cpu_time_total_ns": "self_cpu_time_total",
    "cpu_memory": "cpu_memory",
    "device_memory": "device_memory",
    "flops": "flops",
}


def upgraded(document: dict[str, Any], *, version: int) -> dict[str, Any]:
    """A run or a comparison in the shape of ``version``, today's, upgraded in place."""
    written = document.get("schema_version")
    if type(written) is int and written == 1 < version:
        for row in _rows(document):
            _upgrade(row)
        document["schema_version"] = version
    return document


def _rows(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a run's tests, and of both sides of a comparison's."""
    for test in _objects(document.get("tests")):
        for side in (test, *_objects([test.get("base"), test.get("head")])):
            yield from _objects(side.get("ops"))


def _objects(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, list):
        yield from (each for each in found if isinstance(each, dict))


def _upgrade(row: dict[str, Any]) -> None:
    devices = row.pop("device", {})
    if not isinstance(devices, dict):
        row["metrics"] = devices
        return
    metrics = {new: row.pop(old) for old, new in _METRICS.items() if old in row} | devices
    # Times were also written for rows without times.
    row["metrics"] = {
        name: value
        for name, value in metrics.items()
        if name == "count" or type(value) is not int or value != 0
    }
