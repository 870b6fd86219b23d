"""Metadata of traces: checked when given, merged when written."""

import json
from pathlib import Path

import pytest

from pytest_opprof import profile
from pytest_opprof.profiler.cycle import _TRACES_OWN, TraceMetadata


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


def test_keys_of_the_trace_itself_are_refused(tmp_path: Path) -> None:
    with profile() as prof:
        pass
    prof.export_chrome_trace(tmp_path / "trace.json")
    given = {"trace_id", "host_name"}
    own = json.loads((tmp_path / "trace.json").read_bytes()).keys() - given
    assert own == _TRACES_OWN
    metadata = TraceMetadata()
    for key in own:
        for add in (metadata.add, metadata.add_json, metadata.preset):
            with pytest.raises(ValueError, match=f"metadata '{key}': each trace has this key"):
                add(key, "1")
    for key in given:
        metadata.add(key, "mine")


def test_user_metadata_overrides_the_profilers() -> None:
    metadata = TraceMetadata()
    metadata.preset("a", "1")
    metadata.preset("b", "1")
    metadata.add_json("a", "2")
    assert merged(metadata, b=0, c=0) == {"a": 2, "b": 1, "c": 0}
