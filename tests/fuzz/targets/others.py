"""Files of other programs: pytest-benchmark's files, GitHub's events and zips, anybody's comments."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fuzz.target import Target, put
from support.forges.artifacts import DOCUMENT

from pytest_opprof.forge.artifact import unpack_artifact
from pytest_opprof.forge.event import Completed, Opened, read_event
from pytest_opprof.forge.sticky import Marker
from pytest_opprof.results.benchmark_run import run_from_benchmarks
from pytest_opprof.results.files import read_run, run_from_bytes, write_run


def _read_benchmarks(data: bytes, folder: Path) -> None:
    run, again = run_from_benchmarks(put(folder, "0001.json", data)), folder / "again.json"
    write_run(again, run)
    assert read_run(again) == run


def _read_artifact(data: bytes, _: Path) -> None:
    run_from_bytes(unpack_artifact(data, name=DOCUMENT, where="the artifact"), where="the artifact")


def _read_event(data: bytes, folder: Path) -> None:
    match read_event(put(folder, "event.json", data)):
        case Opened(repository=repository, head=head) | Completed(repository=repository, head=head):
            # they are part of request paths
            assert head.isalnum()
            assert not set(repository.split("/")) & {"", ".", ".."}
            assert repository.count("/") == 1


def _read_comment(data: bytes, _: Path) -> None:
    marker = Marker.of(data.decode("utf-8", "replace"))
    if marker is not None:
        assert Marker.of(f"{marker.line}\nmore") == marker
        assert "-->" not in marker.line[:-3]


TARGETS: Final = (
    Target(name="benchmark", read=_read_benchmarks, words=("fullname", "stats", "data", "machine_info")),
    Target(name="artifact", read=_read_artifact),
    Target(name="event", read=_read_event, words=("workflow_run", "pull_request", "head_repository")),
    Target(name="comment", read=_read_comment, words=("<!-- opprof:sticky v1 key=",)),
)
