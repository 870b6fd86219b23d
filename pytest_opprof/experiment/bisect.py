"""``opprof bisect``: which commit changed an exact metric of a test."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pytest_opprof.baselines.archive import Archive
from pytest_opprof.baselines.folder import project_folder, project_writing, state_file
from pytest_opprof.baselines.git import Git
from pytest_opprof.errors import DocumentError, ExperimentError, UsageError
from pytest_opprof.experiment.one_commit import Measured, Target, measure_commit, test_files
from pytest_opprof.experiment.session import check_timeout
from pytest_opprof.experiment.worktree import git
from pytest_opprof.metrics import Family, MetricPath, parse_path
from pytest_opprof.results.files import parse, read_bytes, shown, write_bytes

_STATE: Final = "bisect.json"
_FIELDS: Final = "%H%x00%an <%ae>%x00%cs%x00%s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is searched for; a state belongs to one question."""

    pattern: str
    test: str
    good: str
    bad: str
    setup: str
    python: str


class BisectState:
    """The measurements of one bisection, in a project's ``.opprof``, so that it can be resumed."""

    def __init__(self, folder: Path, question: Question) -> None:
        self._folder = folder
        self._path = state_file(folder, _STATE)
        self._question = question
        self.measured: dict[str, Measured] = {}

    def resume(self) -> None:
        """Load the measurements of an interrupted bisection; raises `UsageError` if there is none.

        Failed measurements are tried again: the machine or the timeout may have caused them.
        """
        if not self._path.exists():
            raise UsageError(f"there is nothing to resume: no {shown(self._path)}. Leave out --resume")
        document = parse(read_bytes(self._path), where=shown(self._path))
        try:
            asked = Question(**document["question"])
            known = {str(commit): _read(found) for commit, found in document["measured"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            msg = f"{shown(self._path)} is not the state of a bisection. Leave out --resume to start again"
            raise DocumentError(msg) from error
        if asked != self._question:
            was, now = asdict(asked), asdict(self._question)
            field = next(name for name in now if was[name] != now[name])
            raise UsageError(
                f"{shown(self._path)} is of another bisection: its {field} is {was[field]!r}, not "
                f"{now[field]!r}. Leave out --resume to start again"
            )
        self.measured = {commit: found for commit, found in known.items() if found.value is not None}

    def keep(self, commit: str, found: Measured) -> None:
        """Add a measurement, and write the file."""
        self.measured[commit] = found
        measured = {each: asdict(known) for each, known in self.measured.items()}
        document = {"question": asdict(self._question), "measured": measured}
        with project_writing(self._folder):
            write_bytes(self._path, json.dumps(document, indent=1).encode("ascii") + b"\n")

    def forget(self) -> None:
        """Remove the file once the question is answered."""
        self._path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitValue:
    """A commit as users see it, and the metric there."""

    id: str  # the full hash
    author: str  # name and address
    date: str  # the committer's date, as YYYY-MM-DD
    subject: str
    measured: Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected:
    """The result of a bisection."""

    path: str
    before: CommitValue  # the commit before the change; if nothing changed, the good one
    # One commit is the answer; of several, only the last could be measured. Empty if the metric is the same
    # at both ends.
    suspects: tuple[CommitValue, ...]
    newest: CommitValue  # the bad commit

    @property
    def is_found(self) -> bool:
        """Whether the change belongs to one commit."""
        return len(self.suspects) == 1


def question_of(
    test: str,
    metric: str,
    *,
    good: str | None,
    bad: str,
    setup: str,
    python: str,
    store: Archive,
    repository: Path,
) -> Question:
    """The question, with names of commits resolved.

    Raises `UsageError` without such an exact metric, such a commit, or a stored run to begin at.
    """
    path, test = _path_of(metric, test=test), _from_here(test, repository)
    if path.metric.family is not Family.EXACT:
        raise UsageError(f"{metric} is not an exact metric: two measurements of it differ. Use opprof ab")
    newest = _commit(bad, option="--bad", repository=repository)
    if good is not None:
        oldest: str | None = _commit(good, option="--good", repository=repository)
    else:
        runs = (entry for name in store.names() for entry in store.entries(name))
        stored = {entry.commit for entry in runs if not entry.is_dirty}
        below = Git(repository).ancestors(newest)[1:]
        oldest = next((commit for commit in below if commit in stored), None)
    if oldest is None:
        raise UsageError(
            f"no commit before {newest[:7]} has a run in {store.uri}: "
            f"name a commit where {metric} was right: --good=REV"
        )
    return Question(pattern=metric, test=test, good=oldest, bad=newest, setup=setup, python=python)


def _from_here(test: str, folder: Path) -> str:
    """A test's id with a relative path: an absolute one is not in the work tree of a commit."""
    path, *names = test.split("::")
    if Path(path).is_absolute():
        real = Path(path).parent.resolve() / Path(path).name  # a link stays one
        path = os.path.relpath(real, folder.resolve())
    return "::".join((path, *names))


def _path_of(metric: str, *, test: str) -> MetricPath:
    try:
        return parse_path(metric, where="METRIC")
    except UsageError:
        try:
            parse_path(test, where="TEST")
        except UsageError:
            pass
        else:
            raise UsageError(f"TEST comes before METRIC: opprof bisect {metric} {test}") from None
        raise


class Bisection:
    """A search over the commits of a repository; raises `UsageError` without such a test file.

    Args:
        repository: The folder where the command was started; its project keeps the state.
        say: Called with a sentence for each measurement.
        timeout: Seconds after which a commit's process is stopped and the commit skipped; None for no limit.
    """

    def __init__(
        self,
        question: Question,
        *,
        repository: Path,
        say: Callable[[str], None],
        timeout: float | None = None,
    ) -> None:
        check_timeout(timeout)
        self._question = question
        self._repository = repository
        self._say = say
        self._state = BisectState(project_folder(repository), question)
        self._target = Target(
            repository=repository,
            test=question.test,
            path=parse_path(question.pattern, where="METRIC"),
            setup=question.setup,
            python=question.python,
            files=test_files(repository, question.test, commit=question.bad),
            timeout=timeout,
        )

    def run(self, *, resume: bool) -> Bisected:
        """Search; `resume` reuses the measurements of an interrupted bisection.

        Raises `UsageError` if no commits lie between the good and the bad one or nothing can be resumed, and
        `ExperimentError` if an end cannot be measured, or the metric varies at a commit.
        """
        if resume:
            self._state.resume()
        base, commits = _first_parents(self._question, repository=self._repository)
        head = Git(self._repository).head()
        if head is not None and head.dirty and head.id == commits[-1]:
            self._say("uncommitted changes are ignored: commit them to include them")
        commits, value = self._begun(base, commits)
        bad = self._end(commits[-1], f"--bad={commits[-1][:7]}")
        before, *suspects = first_change(commits, self._measure, good=value) if value != bad else commits[:1]
        if len(suspects) == 1:
            self._confirm(before, suspects[0])
        answer = Bisected(
            path=str(self._target.path),
            before=self._told(before),
            suspects=tuple(map(self._told, suspects)),
            newest=self._told(commits[-1]),
        )
        self._state.forget()
        return answer

    def _begun(self, base: str, commits: Sequence[str]) -> tuple[Sequence[str], int]:
        """The commits to search, and the good value, measured at the first of them."""
        good, first, last = self._question.good, commits[0], commits[-1]
        name = f"--good={base[:7]}" if base == good else f"the merge base {base[:7]}"
        if base != good:
            self._say(
                f"--good={good[:7]} is not an ancestor of --bad={last[:7]}: the search begins at {name}"
            )
        if first != base:
            self._say(f"{name} was merged in: the search begins at {first[:7]}, which both branches have")
        self._say(f"{len(commits) - 1} commits from {first[:7]} to {last[:7]}")
        value = self._end(base, name)
        if first != base and self._measure(first).value != value:
            # The good value came with a merge: what changed it is that merge, or newer.
            above = git(self._repository, "rev-list", "--ancestry-path", f"{base}..{last}").split()
            commits = [base, *filter(set(above).__contains__, commits)]
            self._say(
                f"{first[:7]} does not have that value: "
                f"{len(commits) - 1} commits from {base[:7]} to {last[:7]}"
            )
        return commits, value

    def _end(self, commit: str, name: str) -> int:
        found = self._measure(commit)
        if found.value is None:
            raise ExperimentError(f"{name} cannot be measured: {found.reason}")
        return found.value

    def _measure(self, commit: str) -> Measured:
        known = self._state.measured.get(commit)
        if known is None:
            known = measure_commit(self._target, commit)
            self._state.keep(commit, known)
        told = f"skipped: {known.reason}" if known.value is None else f"{self._target.path} is {known.value}"
        self._say(f"{commit[:7]}  {told}")
        lines = known.error.splitlines()
        for line in lines if len(lines) > 1 else ():
            self._say(f"    {line}")
        return known

    def _confirm(self, *commits: str) -> None:
        """Measure commits again before one is blamed."""
        for commit in commits:
            first, again = self._state.measured[commit], measure_commit(self._target, commit)
            if first != again:
                what = again.reason or str(again.value)
                raise ExperimentError(
                    f"{self._target.path} of {self._target.test} varies at {commit[:7]}: {first.value}, then "
                    f"{what}. A metric that varies cannot be bisected"
                )

    def _told(self, commit: str) -> CommitValue:
        identity, author, date, subject = (
            git(self._repository, "show", "--no-patch", f"--format={_FIELDS}", commit)
            .rstrip("\n")
            .split("\0")
        )
        measured = self._state.measured[commit]
        return CommitValue(id=identity, author=author, date=date, subject=subject, measured=measured)


def _first_parents(question: Question, *, repository: Path) -> tuple[str, Sequence[str]]:
    """The merge base of the good and the bad commit, and the first-parent commits from it to the bad one.

    If the merge base was merged in, they begin at the newest commit that both branches have. Oldest first.
    """
    base = Git(repository).merge_base(question.good, question.bad)
    if base is None or base == question.bad:
        raise UsageError(
            f"no commits lie between --good={question.good[:7]} and --bad={question.bad[:7]}: name a --good "
            "that is an ancestor of --bad"
        )
    listed = git(repository, "rev-list", "--first-parent", "--reverse", f"{base}..{question.bad}").split()
    return base, [git(repository, "rev-parse", f"{listed[0]}^").strip(), *listed]


def _commit(revision: str, *, option: str, repository: Path) -> str:
    git_here = Git(repository)
    found = git_here.commit_of(revision)
    if found is None:
        raise UsageError(f"{option}={revision}: {git_here.problem or 'git knows no such commit'}")
    return found


def _read(found: Any) -> Measured:
    value = found["value"]
    if not (value is None or isinstance(value, int)):
        raise TypeError(f"{value!r} is not a value of an exact metric")
    return Measured(value=value, reason=str(found["reason"]))


def first_change(commits: Sequence[str], measure: Callable[[str], Measured], *, good: int) -> Sequence[str]:
    """Find a commit at which a number is no longer ``good``, by a binary search.

    If it changes more than once, this finds one of the changes from the good value. Of the commits, oldest
    first, the first has the good value and the last another; those between are measured at most once.

    Returns:
        The last commit known to have the good value, and the suspects after it, up to the first known to
        have another. One suspect is the answer; of several, only the last could be measured.
    """
    low, high = 0, len(commits) - 1
    skipped: set[int] = set()
    while (at := _middle(low, high, skipped)) is not None:
        value = measure(commits[at]).value
        if value is None:
            skipped.add(at)
        elif value == good:
            low = at
        else:
            high = at
    return commits[low : high + 1]


def _middle(low: int, high: int, skipped: Collection[int]) -> int | None:
    """The index nearest to the middle that can still be measured; None if there is none."""
    left = [at for at in range(low + 1, high) if at not in skipped]
    return min(left, key=lambda at: abs(2 * at - low - high), default=None)
