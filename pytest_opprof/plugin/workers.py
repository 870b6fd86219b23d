"""Tests in other processes: each process measures and judges, and leaves files for the one that joins them.

These are xdist's workers, and children that a plugin forks for a test.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Self

import pytest

from pytest_opprof.experiment.place import Place
from pytest_opprof.plugin.stash import COLLECTED, XDIST
from pytest_opprof.results.files import read_run, write_bytes, write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Run, TestResult

_BASELINE: Final = "baseline.json"
_NUMBERS: Final = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The folder that the controller and its workers share."""

    # Only of this session. It does not exist if none could be made: nothing is shared.
    folder: Path
    worker: str = ""  # the worker's name; "" in the controller
    # The folder if this process made it; None if another did, or none could be made.
    place: Place | None = None

    @classmethod
    def of_this_process(cls) -> Self:
        """A folder of a session without workers, for forked children."""
        place = Place("exchange")
        try:
            place.__enter__()
        except OSError:
            return cls(folder=Path(os.devnull, "none"), worker=str(os.getpid()))
        return cls(folder=place.folder, worker=str(os.getpid()), place=place)

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process made it; in a forked child it is the parent's."""
        return self.worker == str(os.getpid())

    def remove(self) -> None:
        """Remove it with its contents."""
        if self.place is not None:
            self.place.__exit__(None, None, None)

    def put_baseline(self, run: Run) -> None:
        """Keep the resolved baseline for the workers."""
        write_run(self.folder / _BASELINE, run)

    def baseline(self) -> Run | None:
        """The baseline that the controller resolved; None if there is none."""
        path = self.folder / _BASELINE
        return read_run(path) if path.exists() else None

    def put_result(self, run: Run) -> None:
        """Keep one test's result atomically: a worker that dies later loses nothing."""
        # A test may have stopped the clock, and may be forked.
        unique = f"{next(_NUMBERS):06}-{os.urandom(8).hex()}"
        write_run(self.folder / f"{time.time_ns():020}-{self.worker}-{unique}.run.json", run)

    def results(self) -> Iterator[tuple[Run, TestResult]]:
        """The workers' results, in the order in which the tests ended, each with its run."""
        for path in sorted(self.folder.glob("*.run.json")):
            run = read_run(path)
            for test in run.tests:
                yield run, test

    def put_collected(self, collected: Collected) -> None:
        """Keep what this worker collected."""
        document = {field.name: sorted(getattr(collected, field.name)) for field in fields(collected)}
        write_bytes(self.folder / f"{self.worker}{COLLECTED}", json.dumps(document).encode())

    def collected(self) -> Collected:
        """What the workers collected: each collects everything, so one will do."""
        for path in sorted(self.folder.glob(f"*{COLLECTED}")):
            document = json.loads(path.read_bytes())
            return Collected(**{name: frozenset(values) for name, values in document.items()})
        return Collected()


def exchange_of(config: pytest.Config) -> Exchange | None:
    """This worker's exchange; None if the tests run in this process."""
    given = getattr(config, "workerinput", {}).get(XDIST)
    if given is None:
        return None
    return Exchange(folder=Path(given["folder"]), worker=os.environ.get("PYTEST_XDIST_WORKER", "worker"))
