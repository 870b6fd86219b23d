"""Judge the run that a fork's pull request uploaded, by our code and against our baseline.

The pull request's code measured itself in a job without permissions, and uploaded its run. This is the other
half: a job that may comment and never runs that code. Only the event, GitHub's answers and the command line
decide what it does. From the artifact it takes numbers and names, and none of these can choose the pull
request, the baseline, the gates or a path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from pytest_opprof.baselines.archive import Archive
from pytest_opprof.baselines.resolve import candidates, resolved
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.sessions import Policy, compare_runs
from pytest_opprof.errors import DocumentError, MissingBaselineError, OpprofError
from pytest_opprof.forge.artifact import MAX_ARTIFACT_BYTES, unpack_artifact
from pytest_opprof.forge.client import Api
from pytest_opprof.forge.event import Completed
from pytest_opprof.forge.github_runs import (
    PullRequest,
    download_artifact,
    merge_base,
    newest_artifact,
    open_pull_requests,
)
from pytest_opprof.release import version
from pytest_opprof.results.files import run_from_bytes
from pytest_opprof.results.run import Commit, Environment, Run
from pytest_opprof.wording import counted

ARTIFACT: Final = "opprof-run"
TRACES: Final = "opprof-traces"
DOCUMENT: Final = "opprof-run.json"
_PULL_REQUEST = "pull_request"
_SHORT = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines:
    """What to compare with, from the command line and the checkout."""

    store: Archive
    name: str | None  # the baseline's name; None for the target branch's
    root: Path  # a folder of the checkout
    # Rules beside the baseline's markers, and accepted rises, as on the default branch. The rises that the
    # pull request itself accepts are for its review.
    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison of the uploaded run."""

    pull_request: PullRequest
    comparison: Comparison
    has_traces: bool  # whether the run uploaded traces too; they are not read


@dataclass(frozen=True, slots=True, kw_only=True)
class NoResult:
    """Why there is nothing to compare."""

    reason: str  # a sentence; it may quote a refused artifact
    pull_request: PullRequest | None = None  # the measured pull request; None if unknown
    is_refused: bool = False  # whether there was an artifact that cannot be used


def compare_uploaded(
    api: Api, event: Completed, *, baselines: Baselines, now: datetime
) -> Compared | NoResult:
    """Compare the run that a workflow uploaded; `now` is for the baseline's age."""
    if event.cause != _PULL_REQUEST:
        return NoResult(reason=f"the finished run was for the event {event.cause}, not for a pull request")
    pull_request = _pull_request_of(api, event)
    if isinstance(pull_request, NoResult):
        return pull_request
    try:
        head = _uploaded_run(api, event)
    except DocumentError as error:
        return NoResult(reason=str(error), pull_request=pull_request, is_refused=True)
    if head is None:
        reason = f"the finished run uploaded no artifact {ARTIFACT}: its log says why"
        return NoResult(reason=reason, pull_request=pull_request)
    start = merge_base(api, event.repository, base=pull_request.base, head=event.head) or pull_request.base
    name = baselines.name or pull_request.base_branch
    base, notes = _baseline(baselines, name, start=start, here=head.environment, now=now)
    head, held = _held_to(base, head)
    try:
        comparison = compare_runs(
            base,
            head,
            created=now,
            opprof_version=version(),
            policy=baselines.policy,
            notes=(*notes, *held),
        )
    except OpprofError:
        raise  # our own baseline's fault: only its gates and limits are parsed here
    except Exception as error:  # noqa: BLE001  # whatever it is, the numbers did it
        return unusable(error, pull_request)
    has_traces = newest_artifact(api, event.repository, run=event.run, name=TRACES) is not None
    return Compared(pull_request=pull_request, comparison=comparison, has_traces=has_traces)


def unusable(error: Exception, pull_request: PullRequest) -> NoResult:
    """The outcome for a valid artifact that still cannot be compared or shown."""
    return NoResult(
        reason=f"the artifact {ARTIFACT} cannot be compared ({type(error).__name__}). It was not used",
        pull_request=pull_request,
        is_refused=True,
    )


def _pull_request_of(api: Api, event: Completed) -> PullRequest | NoResult:
    """The only open pull request at the run's commit and from its branch.

    The event's own list of pull requests is empty for forks.
    """
    owner = event.head_repository.partition("/")[0]
    if not owner or not event.branch:
        return NoResult(reason="the measured branch no longer exists")
    found = [
        each
        for each in open_pull_requests(api, event.repository, owner=owner, branch=event.branch)
        if each.head == event.head
        and each.head_repository == event.head_repository
        and each.base_repository == event.repository
    ]
    if len(found) != 1:
        many = "no open pull request is" if not found else f"{len(found)} open pull requests are"
        return NoResult(reason=f"{many} at {event.head[:_SHORT]}, the commit that was measured")
    return found[0]


def _uploaded_run(api: Api, event: Completed) -> Run | None:
    """The uploaded run, with the event's commit; None without an upload. DocumentError if it is unusable."""
    artifact = newest_artifact(api, event.repository, run=event.run, name=ARTIFACT)
    if artifact is None:
        return None
    where = f"artifact {artifact.number} of run {event.run}"
    if artifact.run != event.run or artifact.head != event.head:
        raise DocumentError(f"{where}: it belongs to another run or commit. It was not used")
    if artifact.size > MAX_ARTIFACT_BYTES:
        raise DocumentError(f"{where}: it has more than {MAX_ARTIFACT_BYTES} bytes. It was not used")
    data = download_artifact(api, event.repository, artifact, most=MAX_ARTIFACT_BYTES)
    place = f"{where}: {DOCUMENT}"
    run = run_from_bytes(unpack_artifact(data, name=DOCUMENT, where=where), where=place)
    if run.commit is None:
        raise DocumentError(
            f"{place}: it names no commit, so it was not used. The measuring job needs git, and a checkout "
            "that git may read (git config --global safe.directory)"
        )
    if run.commit.id != event.head:
        raise DocumentError(
            f"{place}: it measured {run.commit.id[:_SHORT]}, but the pull request is at "
            f"{event.head[:_SHORT]}, so it was not used. Check out github.event.pull_request.head.sha in the "
            "measuring workflow"
        )
    # Its name, branch and notes are left out: readers could not tell them from ours.
    return replace(run, name=None, notes=(), commit=Commit(id=event.head, dirty=run.commit.dirty))


def _baseline(
    baselines: Baselines, name: str, *, start: str, here: Environment, now: datetime
) -> tuple[Run | None, tuple[str, ...]]:
    """The run of the pull request's merge base, or of its nearest ancestor, and notes.

    GitHub's merge base decides. The environment that the artifact claims chooses only among a commit's runs:
    a different one makes verdicts INCONCLUSIVE, but cannot choose another commit.
    """
    try:
        found_at = candidates(baselines.store, name, repository=baselines.root, here=here, start=start)
        found = resolved(next(found_at), store=baselines.store, now=now)
    except MissingBaselineError as error:
        return None, (str(error),)
    return found.run, (f"compared with {found.label}", *found.notes)


def _held_to(base: Run | None, head: Run) -> tuple[Run, list[str]]:
    """The run with only the gates and limits of the baseline's markers, and notes on its own.

    A marker is the pull request's code too: it may switch its gate off, be malformed, or have a pattern that
    takes hours to match its own op names.
    """
    before = {} if base is None else {test.node_id: test for test in base.tests}
    tests, others = [], 0
    for test in head.tests:
        known = before.get(test.node_id)
        gates, limits = (known.gates, known.limits) if known else ({}, {})
        others += test.gates != gates or test.limits != limits
        tests.append(replace(test, gates=gates, limits=limits))
    notes = []
    if others:
        have = counted(others, "test has", "tests have")
        notes.append(f"{have} other gates or limits in the pull request: they hold once it is merged")
    if left_out := len(before.keys() - {test.node_id for test in head.tests}):
        notes.append(f"{left_out} of the baseline's tests are not in the pull request's upload")
    return replace(head, tests=tuple(tests)), notes
