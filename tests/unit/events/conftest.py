"""Fixtures of the events' tests."""

import pytest

from pytest_opprof.events.forest import EventForest
from pytest_opprof.events.recorded_event import RecordedEvent


@pytest.fixture
def made_events(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The index of each event that became an object, in order."""
    made: list[int] = []
    original = RecordedEvent.__init__

    def counting(self: RecordedEvent, forest: EventForest, index: int) -> None:
        made.append(index)
        original(self, forest, index)

    monkeypatch.setattr(RecordedEvent, "__init__", counting)
    return made
