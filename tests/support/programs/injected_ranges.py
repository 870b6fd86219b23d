"""Processes in which a library's ranges reach us through ITT or NVTX."""

from __future__ import annotations

from pytest_opprof.capture.injection import Injection, library_path

# Programs start with this. `rows` are events: name, name of the caller, kind, and one more field.
PRELUDE = """
    import json, sys, threading
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector
    from pytest_opprof.capture.injection import ITT, NVTX

    collector = Collector.instance()

    def start(*sources):
        collector.open(sources=frozenset({"ranges", *sources}))
        collector.start()

    def fields(recording):
        return [recording.fields(event) for event in range(len(recording))]

    def rows(recording, more):
        names = [recording.name(event) for event in range(len(recording))]
        callers = [names[parent] if parent >= 0 else None for parent in recording.parent]
        return [list(row) for row in zip(names, callers, recording.kind, more, strict=True)]
"""


def unarmed(injection: Injection) -> dict[str, str | None]:
    """An environment without a collector for libraries, whatever the tests' own environment is."""
    return {injection.variable: None, injection.mark: None}


def exported(injection: Injection) -> dict[str, str | None]:
    """An environment in which the user has named our library before Python starts."""
    return unarmed(injection) | {injection.variable: str(library_path())}
