"""Metadata of traces: checked when given, merged when written."""

import json

import pytest

from pytest_opprof.profiler.cycle import TraceMetadata


def merged(metadata: TraceMetadata, **known: object) -> dict[str, object]:
    return {key: json.loads(value) for key, value in metadata.merged(known).items()}


def test_any_string_becomes_json() -> None:
    metadata = TraceMetadata()
    metadata.add('a "quoted" key', 'a"b\\c\n日本\ud800')
    assert merged(metadata) == {'a "quoted" key': 'a"b\\c\n日本\ud800'}


def test_json_is_kept_as_it_is() -> None:
    metadata = TraceMetadata()
    metadata.add_json("limits", '{"max": [1, 2.5, null]}')
    assert merged(metadata) == {"limits": {"max": [1, 2.5, None]}}


@pytest.mark.parametrize("value", ["", "{", "'single'", "nope"])
def test_broken_json_is_refused_when_given(value: str) -> None:
    with pytest.raises(ValueError, match="metadata 'key' is not JSON"):
        TraceMetadata().add_json("key", value)
    with pytest.raises(ValueError, match="metadata 'key' is not JSON"):
        TraceMetadata().preset("key", value)


def test_user_metadata_overrides_the_profilers() -> None:
    metadata = TraceMetadata()
    metadata.preset("a", "1")
    metadata.preset("b", "1")
    metadata.add_json("a", "2")
    assert merged(metadata, b=0, c=0) == {"a": 2, "b": 1, "c": 0}
