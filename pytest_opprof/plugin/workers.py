"""Tests that run in xdist's workers: each measures and judges, and leaves files for the controller."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof.results.files import file_digest, read_run, write_bytes, write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Run, TestResult

_KEY = "opprof"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The folder that the controller and its workers share.

    Attributes:
        folder: Of this session alone.
        worker: The worker's name; "" in the controller.
    """

    folder: Path
    worker: str = ""

    def put_baseline(self, run: Run) -> str:
        """Keep the resolved baseline for the workers; its digest."""
        path = self.folder / "baseline.json"
        write_run(path, run)
        return file_digest(path)

    def baseline(self, digest: str) -> Run:
        """The baseline that the controller resolved and checked."""
        return read_run(self.folder / "baseline.json", digest=digest)

    def put_result(self, run: Run) -> None:
        """Keep one test's result, whole or not at all: a worker that dies later loses nothing."""
        write_run(self.folder / f"{time.time_ns():020}-{self.worker}.run.json", run)

    def results(self) -> Iterator[tuple[Run, TestResult]]:
        """What the workers left, in the order in which the tests ended, each with the run it came in."""
        for path in sorted(self.folder.glob("*.run.json")):
            run = read_run(path)
            for test in run.tests:
                yield run, test

    def put_collected(self, collected: Collected) -> None:
        """Keep what this worker collected."""
        document = {"node_ids": sorted(collected.node_ids), "whole_paths": sorted(collected.whole_paths)}
        write_bytes(self.folder / f"{self.worker}.collected.json", json.dumps(document).encode())

    def collected(self) -> Collected:
        """What the workers collected: each collects everything, so any of them knows."""
        for path in sorted(self.folder.glob("*.collected.json")):
            document = json.loads(path.read_bytes())
            return Collected(
                node_ids=frozenset(document["node_ids"]), whole_paths=frozenset(document["whole_paths"])
            )
        return Collected()


def exchange_of(config: pytest.Config) -> Exchange | None:
    """The exchange that this worker was given; None where the tests run in this process."""
    given = getattr(config, "workerinput", {}).get(_KEY)
    if given is None:
        return None
    return Exchange(folder=Path(given["folder"]), worker=os.environ.get("PYTEST_XDIST_WORKER", "worker"))


def baseline_digest(config: pytest.Config) -> str | None:
    """The digest of the baseline in the exchange; None where there is none."""
    digest: str | None = getattr(config, "workerinput", {}).get(_KEY, {}).get("baseline")
    return digest


class ControllerHooks:
    """What the controller does for its workers; registered where xdist distributes."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._given: dict[str, Any] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where to leave its results, and which baseline to judge by."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="opprof-workers-"))
            self._given = {"folder": str(self._folder)}
            from pytest_opprof.plugin.session import open_controller  # noqa: PLC0415  # where there is work

            digest = open_controller(node.config, Exchange(folder=self._folder))
            if digest is not None:
                self._given["baseline"] = digest
        node.workerinput[_KEY] = self._given

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """The exchange is read by then."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
