"""Names and keys of runs: which are valid, and what a key contains.

A commit has a separate run for each environment family, as for each job of a CI matrix.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import quote

from pytest_opprof.baselines.store import Entry
from pytest_opprof.errors import UsageError
from pytest_opprof.results.run import Environment, Run

# The key of counts in the work tree: git knows their commit.
REVIEWED = "counts"
# The first bytes of a document are enough, because `created` is near its beginning.
HEAD_BYTES = 4_096
# The most runs kept of a name.
KEPT_RUNS = 200
# Folders in ``.opprof``, beside the folders of names.
EXPERIMENTS = "ab"
CRASHES = "crashes"
FLEET = "fleet"
HISTORY = "history"
TRACES = "traces"
# No baseline has these names: their files are not its runs.
OTHER_FOLDERS = frozenset({EXPERIMENTS, CRASHES, FLEET, HISTORY, TRACES})
# It follows the project in a name of another project.
IN_PROJECT = ":"
_MAX_NAME = 100
# Quoted, as a file's or ref's name of at most 255 bytes, with an ending.
_MAX_BYTES = 230
_COMMIT_KEY = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})(-dirty)?")
# Between the commit or time and the environment family.
FAMILY = "_"
_KEY = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,120}")
_CREATED = re.compile(rb'"created":\s*"([0-9T:.+-]{19,40})"')
# The prefix of each part of a family. The machine's is empty, so it comes last.
_GPU = "gpu"
_TAGS = {"python": "py", "torch": "torch", "gpu_arch": _GPU, "machine": ""}
# A run's distance from an environment: its family, maybe comparable, another family.
OWN, LIKE, OTHER = range(3)
_MINOR = re.compile(r"\d+\.\d+")
_UNSAFE = re.compile(r"[^0-9A-Za-z._]+")
_MAX_PART = 20
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def is_name(name: str) -> bool:
    """Whether it may name a baseline."""
    return (
        name.isprintable()
        and name.strip() == name
        and 1 <= len(name) <= _MAX_NAME
        and len(quote(name, safe="")) <= _MAX_BYTES
        and not name.startswith(".")
        and name not in OTHER_FOLDERS
        and IN_PROJECT not in name
    )


def check_name(name: str, *, where: str) -> None:
    """Raise `UsageError` for an invalid name."""
    if not is_name(name):
        raise UsageError(
            f"{where}{name!a}: a name has 1 to {_MAX_NAME} printable characters (at most {_MAX_BYTES} bytes, "
            "quoted as in a URL), does not start with a dot, has no colon, and is none of "
            + ", ".join(sorted(OTHER_FOLDERS))
        )


def is_key(text: str) -> bool:
    """Whether it may be a run's key; other files are not ours."""
    return _KEY.fullmatch(text) is not None


def key_of(run: Run) -> str:
    """A run's key: its commit, or the time it was measured, and its environment family."""
    family = family_of(run.environment)
    return old_key_of(run) + (f"{FAMILY}{family}" if family else "")


def old_key_of(run: Run) -> str:
    """An older release's key of a run: without the environment family."""
    if run.commit is None:
        return f"{run.created.astimezone(UTC):%Y%m%dT%H%M%S.%f}Z-{run.run_id[:8]}"
    return run.commit.id + ("-dirty" if run.commit.dirty else "")


def family_in(key: str) -> str:
    """The environment family in a key; empty without one."""
    return key.partition(FAMILY)[2]


def entry_of(name: str, key: str, *, created: datetime, place: str, parts: tuple[str, ...]) -> Entry:
    """An entry, with its key's parts."""
    commit = _COMMIT_KEY.fullmatch(key.partition(FAMILY)[0])
    return Entry(
        name=name,
        key=key,
        family=family_in(key),
        commit=commit[1] if commit else None,
        is_dirty=bool(commit and commit[2]),
        created=created,
        place=place,
        parts=parts,
    )


def created_in(head: bytes) -> datetime | None:
    """When a run was measured, by its document's first bytes; None if they do not say."""
    told = _CREATED.search(head[:HEAD_BYTES])
    try:
        return datetime.fromisoformat(told[1].decode("ascii")).astimezone(UTC) if told else None
    except (ValueError, OverflowError):
        return None


def family_of(environment: Environment) -> str:
    """What counts depend on most, as a part of a key: ``py3.11-torch2.13-x86_64``.

    It has the minor versions of Python and torch, the GPU architecture and the machine architecture, as far
    as known.
    """
    return "-".join(_parts(environment).values())


def distance(family: str, here: Environment) -> int:
    """How far a stored run of a family is from an environment: `OWN`, `LIKE` or `OTHER`.

    The family is empty if an older release stored the run. The environment may be known in part.
    """
    stored, parts = _parts_of(family), _parts(here)
    if any(parts.get(tag, part) != part for tag, part in stored.items()):
        return OTHER
    return OWN if stored == parts else LIKE


def joins(family: str, here: Environment) -> bool:
    """Whether runs of one commit may be joined: the fields known of both are equal, and so is the GPU."""
    gpus = [_parts_of(one).get(_GPU) for one in (family, family_of(here))]
    return distance(family, here) < OTHER and gpus[0] == gpus[1]


def _parts(environment: Environment) -> dict[str, str]:
    values = ((tag, environment.fingerprint.get(field)) for field, tag in _TAGS.items())
    return {tag: tag + _shortened(value) for tag, value in values if value}


def _parts_of(family: str) -> dict[str, str]:
    parts = filter(None, family.split("-"))
    return {next(tag for tag in _TAGS.values() if part.startswith(tag)): part for part in parts}


def _shortened(value: str) -> str:
    minor = _MINOR.match(value)
    return minor[0] if minor else _UNSAFE.sub("_", value)[:_MAX_PART]
