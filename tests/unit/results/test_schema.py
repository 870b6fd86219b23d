"""What a schema refuses, and the messages."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.errors import DocumentError
from pytest_opprof.results.document import run_to_document
from pytest_opprof.results.names import MAX_TESTS
from pytest_opprof.results.schema import Contract, contract_of, json_path, validate

SCHEMAS = Path(__file__).parents[3] / "schemas"


def _valid() -> dict[str, Any]:
    tests = [simple_test({"aten::mul": 2}, node_id=f"t.py::test_{i}") for i in range(4)]
    document: dict[str, Any] = run_to_document(simple_run(*tests))
    return document


@pytest.mark.parametrize("contract", Contract)
def test_schemas_are_valid_and_versioned(contract: Contract) -> None:
    schema = json.loads((SCHEMAS / f"{contract}.schema.json").read_text())
    assert jsonschema_rs.meta.is_valid(schema)
    assert schema["$id"].endswith(f":{contract}:{contract.schema_version}")


@pytest.mark.parametrize("contract", Contract)
def test_every_value_is_capped(contract: Contract) -> None:
    schema = json.loads((SCHEMAS / f"{contract}.schema.json").read_text())
    open_parts: list[str] = []

    def look(part: Any, path: str) -> None:
        if isinstance(part, dict):
            kinds = part.get("type", ())
            kinds = [kinds] if isinstance(kinds, str) else kinds
            capped = {
                "array": "maxItems",
                "string": "maxLength",
                "integer": "maximum",
            }
            open_parts.extend(
                f"{path}: {kind}" for kind in kinds if kind in capped and capped[kind] not in part
            )
            for name, inner in part.items():
                look(inner, f"{path}.{name}")
        elif isinstance(part, list):
            for inner in part:
                look(inner, path)

    look(schema, "")
    assert open_parts == []


OP = ("tests", 0, "ops", 0)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("tests", 3, "ops", 0, "metrics", "count"), -2, "tests[3].ops[0].metrics.count: -2 is less than 0"),
        (
            (*OP, "metrics", "count"),
            2.5,
            "tests[0].ops[0].metrics.count: 2.5 is not an integer or array or object",
        ),
        (
            (*OP, "metrics", "count"),
            True,
            "tests[0].ops[0].metrics.count: True is not an integer or array or object",
        ),
        (
            (*OP, "metrics", "count"),
            [1] * 1001,
            "tests[0].ops[0].metrics.count: 1001 entries are more than 1000",
        ),
        ((*OP, "metrics", "count"), {"sum": 1, "min": 1}, "tests[0].ops[0].metrics.count: 'max' is missing"),
        ((*OP, "name"), "x" * 2000, "tests[0].ops[0].name: 2000 characters are more than 1024"),
        (("tests", 0, "steps"), "5", "tests[0].steps: '5' is not an integer"),
        (("tests", 0, "steps"), 10**9, "tests[0].steps: 1000000000 is more than 100000"),
        (("tests", 0, "outcome"), "xpass", "tests[0].outcome: 'xpass' is not one of passed, failed, skipped"),
        (("tests", 0, "gates"), {"a": 1}, "tests[0].gates.a: 1 is not a string"),
        (("tests", 0, "limits"), {"a.b": None}, "tests[0].limits['a.b']: null is not an integer or string"),
        (("tests", 0, "schedule"), {"wait": 1}, "tests[0].schedule: 'skip_first' is missing"),
        (("commit",), {"id": "HEAD", "dirty": False, "branch": None}, "commit.id: 'HEAD' does not fit"),
        (("created",), "yesterday", "created: 'yesterday' does not fit"),
        (("run_id",), "5f0c\n", r"run_id: '5f0c\n' does not fit"),
        (("tests",), {}, "tests: an object is not an array"),
    ],
)
def test_refusal_names_the_json_path(path: tuple[Any, ...], value: object, sentence: str) -> None:
    document = _valid()
    place: Any = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    with pytest.raises(DocumentError) as caught:
        validate(document, Contract.RUN, where="main/1a2b.json")
    message = str(caught.value)
    assert message.startswith(f"main/1a2b.json: {sentence}")
    assert message.endswith(" (run.schema.json). The file was not used")


@pytest.mark.parametrize("document", [None, 5, "x", [], {}, {"kind": "sarif"}, {"kind": ["opprof-run"]}])
def test_foreign_documents_are_refused(document: object) -> None:
    with pytest.raises(DocumentError, match=r"^x\.json: this is not a file of pytest-opprof"):
        validate(document, Contract.RUN, where="x.json")


def test_trace_is_distinguished_from_a_run_file() -> None:
    with pytest.raises(DocumentError, match=r"^x\.json: this is a trace: `opprof trace show` prints it"):
        contract_of({"traceEvents": []}, where="x.json")


def test_the_other_kind_is_named() -> None:
    with pytest.raises(DocumentError, match="this is a run, but a comparison is needed"):
        validate(_valid(), Contract.COMPARISON, where="x.json")
    assert contract_of(_valid(), where="x.json") is Contract.RUN


def test_newer_version_names_the_release_to_install() -> None:
    document = _valid() | {"schema_version": 3, "opprof_version": "0.9.1", "new field": 1}
    with pytest.raises(
        DocumentError, match=r"version 3 is newer than 2.*pip install 'pytest-opprof>=0\.9\.1'"
    ):
        validate(document, Contract.RUN, where="x.json")


def test_newer_version_quotes_no_shell() -> None:
    document = _valid() | {"schema_version": 3, "opprof_version": "1; rm -rf /"}
    with pytest.raises(DocumentError, match=r"pip install --upgrade pytest-opprof$"):
        validate(document, Contract.RUN, where="x.json")


@pytest.mark.parametrize("version", [0, True, "1", None, 1.5])
def test_versions_that_never_were_are_refused(version: object) -> None:
    with pytest.raises(DocumentError, match=r"^x\.json: schema_version: "):
        validate(_valid() | {"schema_version": version}, Contract.RUN, where="x.json")


def test_hostile_keys_are_escaped() -> None:
    document = _valid()
    document["tests"][0]["gates"] = {"\x1b[31m": 5}
    with pytest.raises(DocumentError) as caught:
        validate(document, Contract.RUN, where="x.json")
    assert str(caught.value).isprintable()


def test_paths_read_like_code() -> None:
    assert json_path(["tests", 3, "ops", 17, "count"]) == "tests[3].ops[17].count"
    assert json_path(["totals", "ops.count"]) == "totals['ops.count']"


@pytest.mark.parametrize("at", [0, 1, 2])
def test_wrong_test_is_found_among_others(at: int) -> None:
    run = simple_run(*(simple_test({"aten::mul": 1}, node_id=f"t.py::test_{name}") for name in "abc"))
    document = run_to_document(run)
    document["tests"][at]["ops"][0]["metrics"]["count"] = -1
    with pytest.raises(DocumentError, match=rf"tests\[{at}\]\.ops\[0\]\.metrics\.count: -1 is less than 0"):
        validate(document, Contract.RUN, where="run.json")


def test_too_many_tests_are_too_many_though_each_is_right() -> None:
    document = run_to_document(simple_run(simple_test({"aten::mul": 1})))
    document["tests"] *= MAX_TESTS + 1
    with pytest.raises(DocumentError, match=r"tests: 20001 entries are more than 20000"):
        validate(document, Contract.RUN, where="run.json")


@pytest.mark.parametrize("place", ["document", "test", "lines"])
def test_key_with_a_lone_surrogate_is_a_key(place: str) -> None:
    document = _valid()
    test = document["tests"][0]
    {"document": document, "test": test, "lines": test.setdefault("lines", {})}[place]["\ud800"] = "x"
    assert validate(document, Contract.RUN, where="x.json") is document


def test_no_value_hides_behind_a_key_with_a_surrogate() -> None:
    document = _valid()
    document["tests"][0]["lines"] = {"\ud800": 5}
    with pytest.raises(DocumentError, match="5 is not a string"):
        validate(document, Contract.RUN, where="x.json")
    document["tests"][0]["lines"] = {"\ud800": 5, "\U000fd800": "x"}
    with pytest.raises(DocumentError, match="two keys of an object differ only in surrogates"):
        validate(document, Contract.RUN, where="x.json")
