"""pytest-benchmark's view of a machine in our documents' terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pytest_opprof.results.names import bounded

_LONGEST: Final = 200
# Our name of a detail to its path. Not the host's name: documents may be committed.
_DETAILS: Final[Mapping[str, tuple[str, ...]]] = {
    "cpu": ("cpu", "brand_raw"),
    "cpu.frequency": ("cpu", "hz_advertised_friendly"),
    "cpu.l2_cache": ("cpu", "l2_cache_size"),
    "cpu.l3_cache": ("cpu", "l3_cache_size"),
    "kernel": ("release",),
    "python.compiler": ("python_compiler",),
}
# The fields of the fingerprint that it has in the same meaning.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "implementation": ("python_implementation",),
    "machine": ("machine",),
    "cpu_model": ("cpu", "brand_raw"),
    "cpu_count": ("cpu", "count"),
}


def details_of(machine_info: Mapping[str, object]) -> dict[str, str]:
    """Details of the machine for readers, not compared."""
    return _found(machine_info, _DETAILS)


def fingerprint_of(machine_info: Mapping[str, object]) -> dict[str, str]:
    """The known fields that metrics depend on; torch's version is not among them."""
    fields = _found(machine_info, _FIELDS)
    version = machine_info.get("python_version")
    if isinstance(version, str) and version.count(".") >= 1:
        fields["python"] = bounded(".".join(version.split(".")[:2]), length=_LONGEST)
    return fields


def _found(machine_info: Mapping[str, object], ways: Mapping[str, Iterable[str]]) -> dict[str, str]:
    values = {name: _at(machine_info, way) for name, way in ways.items()}
    return {name: bounded(str(value), length=_LONGEST) for name, value in values.items() if value}


def _at(machine_info: object, way: Iterable[str]) -> str | int | None:
    for key in way:
        machine_info = machine_info.get(key) if isinstance(machine_info, dict) else None
    is_plain = isinstance(machine_info, str | int) and not isinstance(machine_info, bool)
    return machine_info if is_plain else None  # type: ignore[return-value]  # which `is_plain` says
