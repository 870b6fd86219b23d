"""Saves runs into the store at $STORE, in a separate process: ``python -m support.documents.saving ACTION``.

``many NAME`` saves five runs of one commit, each with its own test, once a line arrives. ``forks`` answers
`FORK` with the pid of a child that has opened the store, and saves one run at `SAVE`: so a test starts Python
once and kills many children.
"""

import os
import sys
from pathlib import Path

from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit

MANY = 5
FORK, SAVE = b"f", b"s"
SAVED = "t.py::test_saved"


def _archive() -> Archive:
    return open_store(os.environ["STORE"], root=Path(os.environ["FOLDER"]))


def _save_many(name: str) -> None:
    archive = _archive()
    sys.stdin.readline()
    for number in range(MANY):
        test = simple_test({"aten::mul": 1}, node_id=f"t.py::test_{name}_{number}")
        run = simple_run(test, run_id=f"{name}{number}", commit=Commit(id="1" * 40, dirty=False))
        archive.save("main", run, collected=Collected())


def _save_in_forks() -> None:
    if os.environ["STORE"].startswith("s3:"):
        import s3fs  # noqa: F401  # once, and not in each child
    while given := os.read(0, 1):
        if given != FORK:
            continue  # for a child that was killed before it read the line
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        # a library's first-use imports are not part of a save, and make thousands of calls
        archive = _archive()
        archive.names()
        print(os.getpid(), flush=True)
        os.read(0, 1)
        test = simple_test({"aten::mul": 2}, node_id=SAVED)
        run = simple_run(test, commit=Commit(id=f"{1:040x}", dirty=False))
        archive.save("main", run, collected=Collected())
        os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "many":
        _save_many(sys.argv[2])
    else:
        _save_in_forks()
