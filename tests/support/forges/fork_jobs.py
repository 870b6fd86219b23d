"""A job of ours that judges a fork's upload, and such uploads."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.documents.strategies import simple_run, simple_test
from support.forges.artifacts import artifact_of
from support.forges.github_api import HEAD, MERGED_AT, GitHubApi, workflow_run_event

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.cli.main import main
from pytest_opprof.compare.document import read_comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.results.document import run_to_document
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Environment, Run

RUN = 90
TEST = "tests/test_a.py::test_x"
REFUSED = 4
OURS = Environment(fingerprint={"python": "3.11", "torch": "2.13.0"})
THEIRS = Environment(fingerprint={"python": "3.11", "torch": "2.14.0"})


def run_of(count: int, *, commit: str, environment: Environment = OURS, **others: Any) -> Run:
    """A run in which a test calls an op N times."""
    test = simple_test({"aten::mul": count}, processes=2, **others)
    return simple_run(test, commit=Commit(id=commit, dirty=False), environment=environment)


def uploaded(count: int = 9, **changes: Any) -> dict[str, Any]:
    """A pull request's run file, with nine calls against the baseline's four."""
    return {**run_to_document(run_of(count, commit=HEAD)), **changes}


@dataclass(kw_only=True)
class Job:
    """A job of ours in a checkout of the default branch.

    Attributes:
        api: GitHub's API.
        folder: The checkout.
        told: The command's output.
        problem: Its stderr.
    """

    api: GitHubApi
    folder: Path
    capsys: pytest.CaptureFixture[str]
    told: str = ""
    problem: str = ""

    def event(self, **others: Any) -> None:
        """Set the event of the finished run."""
        event = workflow_run_event(**others)
        (self.folder.parent / "event.json").write_text(json.dumps(event), encoding="utf-8")

    def save(self, count: int, *, name: str = "main", commit: str = MERGED_AT, **others: Any) -> None:
        """Save a baseline."""
        run = run_of(count, commit=commit, **others)
        open_store("dir:.opprof", root=self.folder).save(name, run, collected=Collected())

    def upload(self, document: Any, **others: Any) -> None:
        """Upload a run file as the pull request's job."""
        self.api.upload(artifact_of(document), run=RUN, **others)

    def comment(self, *options: str) -> int:
        """Run the command."""
        before = self._files()
        code = main(["comment", "--from-event", "-o", "../comparison.json", *options])
        self.told, self.problem = self.capsys.readouterr()
        assert self._files() == before, "nothing in the checkout changes"
        assert (self.folder.parent / "output").read_text() == "", "no other step hears of it"
        return code

    def _files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    @property
    def summary(self) -> str:
        """The job's summary page."""
        path = self.folder.parent / "summary.md"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def body(self) -> str:
        """The only comment."""
        (body,) = self.api.bodies
        return str(body)

    @property
    def verdict(self) -> Verdict | None:
        """The only test's verdict."""
        (test,) = read_comparison(self.folder.parent / "comparison.json").tests
        return test.verdict

    @property
    def written_to(self) -> set[str]:
        """The paths of writing requests."""
        return {asked.path for asked in self.api.server.asked if asked.method != "GET"}
