"""Environment families: a commit has a separate run for each, as for each job of a CI matrix."""

from __future__ import annotations

import re

from pytest_opprof.results.run import Environment

# The prefix of each part of a family. The machine's is empty, so it comes last.
_GPU = "gpu"
_TAGS = {"python": "py", "torch": "torch", "gpu_arch": _GPU, "machine": ""}
# A run's distance from an environment: its family, maybe comparable, another family.
OWN, LIKE, OTHER = range(3)
_MINOR = re.compile(r"\d+\.\d+")
_UNSAFE = re.compile(r"[^0-9A-Za-z._]+")
_MAX_PART = 20


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
