"""The page on gates describes the verdicts."""

from pathlib import Path

import pytest

from pytest_opprof.compare.verdicts import DEFAULT_FAIL_ON, Verdict


@pytest.fixture(scope="module")
def text(repository: Path) -> str:
    """The page."""
    return (repository / "docs" / "gates.md").read_text(encoding="utf-8")


def test_every_verdict_is_explained_from_the_worst(text: str) -> None:
    _, _, after = text.partition("## Verdicts")
    table = after.split("\n\n")[2].splitlines()[2:]
    told = [line.split("|")[1].strip() for line in table]
    order = [verdict.label for verdict in Verdict]
    assert told == order
    fails = {line.split("|")[1].strip() for line in table if line.split("|")[3].strip() == "by default"}
    assert fails == {verdict.label for verdict in Verdict if verdict.value in DEFAULT_FAIL_ON.split(",")}
