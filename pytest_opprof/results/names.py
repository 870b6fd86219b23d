"""Names: their length in a document, a test's node id without xdist's suffix, its trace files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

# The caps of run.schema.json.
MAX_NAME = 1_024
MAX_NODE_ID = 4_096
MAX_TEXT = 4_096
MAX_NOTES = 200
MAX_TESTS = 20_000
_DIGEST_LENGTH = 16
_LONGEST_STEM = 80
DIGEST_OF_STEM = 12  # two tests of a project never share it: 48 bits
# The group of the ranges that mark steps.
STEP_NAME = "ProfilerStep*"


def canonical_node_id(node_id: str) -> str:
    """A node id as documents hold it: without xdist's ``@group``, and of bounded length.

    >>> canonical_node_id("tests/test_a.py::test_x[a@b]@gpu")
    'tests/test_a.py::test_x[a@b]'
    """
    at = node_id.rfind("@")
    # xdist appends it after the parameters; an earlier @ is the test's own, or a folder's.
    if "::" in node_id and at > max(node_id.rfind("]"), node_id.rfind("::")):
        node_id = node_id[:at]
    return bounded(node_id, length=MAX_NODE_ID)


def parts_of(node_id: str) -> list[str]:
    """A test's file, its classes, and its own name. Parameters may have a ``::`` that separates nothing.

    >>> parts_of("tests/test_a.py::TestB::test_op[aten::add]")
    ['tests/test_a.py', 'TestB', 'test_op[aten::add]']
    """
    file, colons, rest = node_id.partition("::")
    path, bracket, parameters = rest.partition("[")
    *classes, name = path.split("::")
    return [file, *classes, f"{name}{bracket}{parameters}"] if colons else [file]


def bounded(text: str, *, length: int) -> str:
    """``text`` in at most ``length`` characters; a digest of all of it replaces the rest."""
    if len(text) <= length:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{text[: length - _DIGEST_LENGTH - 1]}~{digest}"


def bounded_text(text: str) -> str:
    """A sentence, cut to a document's limit."""
    return bounded(text, length=MAX_TEXT)


def bounded_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """Notes, cut to a document's limits; the last counts those that are left out."""
    kept = notes if len(notes) <= MAX_NOTES else notes[: MAX_NOTES - 1]
    left = len(notes) - len(kept)
    return (*map(bounded_text, kept), *([f"and {left} more notes"] if left else []))


def trace_stem(node_id: str) -> str:
    """The prefix of a test's trace files: ``test_encoder_step-9f3c0a61e2d4``."""
    plain = re.sub(r"[^0-9A-Za-z_.-]+", "_", parts_of(node_id)[-1])[:_LONGEST_STEM]
    digest = hashlib.sha256(node_id.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_OF_STEM]
    return f"{plain}-{digest}"
