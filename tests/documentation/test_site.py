"""The site has every page, and its references are complete."""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from opprof_docs.api import api_lines
from opprof_docs.commands import command_lines
from opprof_docs.contracts import SCHEMAS, schema_lines
from opprof_docs.errors import error_lines
from opprof_docs.measured import (
    fingerprint_lines,
    op_lines,
    preset_lines,
    total_lines,
    watched_lines,
)
from opprof_docs.options import marker_lines, option_lines
from opprof_docs.parts import filled

import pytest_opprof
from pytest_opprof import errors
from pytest_opprof.cli.main import COMMANDS, whole_parser
from pytest_opprof.metrics import FINGERPRINT_FIELDS, OP_METRICS, PRESETS, TOTALS, WATCHED_OPS
from pytest_opprof.plugin.marker import ARGUMENTS
from pytest_opprof.plugin.option_table import OPTIONS
from pytest_opprof.report.formats import FORMATS

# Variables between our own processes.
OUR_OWN = {
    *("OPPROF_ITT_ARMED", "OPPROF_LIST_TO", "OPPROF_NVTX_ARMED", "OPPROF_USUAL_PROBE_NS"),
    *("OPPROF_REPLAY_COMMAND", "OPPROF_REPLAY_COUNTS", "OPPROF_REPLAY_CPU"),
}


def cells(lines: Iterator[str]) -> list[list[str]]:
    """The rows of the tables among some lines, without their heads."""
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| ")]
    assert len({len(row) for row in rows}) == 1, "a cell broke out of its table"
    return [[cell.strip() for cell in row] for row in rows[2:]]


def first(lines: Iterator[str]) -> list[str]:
    return [row[0].strip("`") for row in cells(lines)]


ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_match_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text, "run make reference"
    assert "```{opprof}" not in text
    assert "```{eval-rst}" not in text


def test_outdated_part_is_rewritten() -> None:
    page = "one\n<!-- generated: presets -->\n| `old` |\n<!-- end -->\ntwo\n"
    written = filled(page)
    assert "old" not in written
    assert "| `no_sync` |" in written
    assert (written[:4], written[-4:]) == ("one\n", "two\n")
    assert filled(written) == written


@pytest.mark.parametrize("page", ["options.md", "commands.md", "reports.md"])
def test_every_report_format_is_listed(page: str) -> None:
    words = set(re.findall(r"\w+", (ROOT / "docs" / page).read_text(encoding="utf-8")))
    assert FORMATS.keys() <= words


def test_every_public_name_is_on_one_page() -> None:
    headings = [
        name
        for page in PAGES
        for name in re.findall(r"^### `([\w.]+)`$", page.read_text("utf-8"), re.MULTILINE)
    ]
    assert {name: headings.count(name) for name in pytest_opprof.__all__} == dict.fromkeys(
        pytest_opprof.__all__, 1
    )


def test_a_docstring_is_on_the_page_with_its_sections() -> None:
    text = "\n".join(api_lines("schedule", "KeyAverages", "TraceFile", "profile", "record_function"))
    assert "def schedule(\n    *,\n    wait: int,\n    warmup: int,\n" in text
    assert re.search(r"^- `wait`: \w", text, re.MULTILINE)
    assert "#### `KeyAverages.table`" in text, "of a class that is not public itself"
    assert "#### `profile.step`" in text
    assert "The rest is that of `_KinetoProfile`." in text
    assert "#### `TraceFile.key_averages`" in text
    assert "class record_function(" in text, "of a type that is written in C"


def test_options_are_listed_with_their_defaults() -> None:
    rows = {row[0].strip("`").removeprefix("--").partition("=")[0]: row for row in cells(option_lines())}
    assert list(rows) == [option.name for option in OPTIONS]
    assert rows["opprof-store"][1].endswith(" (default: `dir:.opprof`)")
    assert rows["opprof-history"][0] == r"`--opprof-history=saved\|all\|off`"


def test_marker_arguments_are_all_listed() -> None:
    assert first(marker_lines()) == list(ARGUMENTS)


def test_metrics_are_all_listed() -> None:
    assert first(total_lines()) == list(TOTALS)
    assert first(op_lines()) == [f"<op>.{name}" for name in OP_METRICS]
    assert first(watched_lines()) == list(WATCHED_OPS)
    assert first(preset_lines()) == list(PRESETS)
    assert first(fingerprint_lines()) == list(FINGERPRINT_FIELDS)


def test_only_watched_totals_are_gates_unasked() -> None:
    rows = {row[0].strip("`"): row for row in cells(total_lines())}
    assert {name for name, row in rows.items() if row[-1] == "yes"} == {
        name for name, metric in TOTALS.items() if metric.watched
    }
    assert rows["device.queue_depth"][1] == "queue depth (less is worse)"


def test_exit_codes_match_the_errors() -> None:
    told = {row[1].strip("`"): int(row[0]) for row in cells(error_lines()) if row[1]}
    assert told == {
        name: each.exit_code
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, errors.OpprofError)
    }


def test_each_command_has_a_section_with_each_argument() -> None:
    text = "\n".join(command_lines())
    for command in COMMANDS:
        assert re.search(rf"^## opprof {command}\b", text, re.MULTILINE), command
    (commands,) = (
        action for action in whole_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    shown = text.partition("## opprof compare\n")[2].partition("\n## ")[0]
    for action in commands.choices["compare"]._actions:
        for option in set(action.option_strings) - {"-h", "--help"}:
            assert f"`{option}" in shown
    assert "else dir:.opprof" in shown, "a default that is not a constant"


def test_each_schema_field_is_listed() -> None:
    text = "\n".join(schema_lines())
    for path in SCHEMAS.glob("*.json"):
        schema = json.loads(path.read_text(encoding="utf-8"))
        assert f"# {schema['title']}" in text
        for name in fields(schema):
            assert f"| `{name}` |" in text, f"{path.name}: {name}"


def fields(schema: object) -> Iterator[str]:
    """The names of all fields of the JSON files, at any depth of the definitions."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.get("$defs", {}).values():
            yield from fields(part)


def test_environment_variables_are_all_listed(repository: Path) -> None:
    sources = [*(repository / "pytest_opprof").rglob("*.py"), *(repository / "native" / "src").rglob("*.c")]
    read = {name for path in sources for name in re.findall(r'"(OPPROF_[A-Z_]+)"', path.read_text("utf-8"))}
    read |= set(re.findall(r"env\.(OPPROF_[A-Z_]+)", (repository / "pyproject.toml").read_text("utf-8")))
    page = (repository / "docs" / "options.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(OPPROF_[A-Z_]+)` \|", page, re.MULTILINE)) == read - OUR_OWN


def test_every_page_is_in_the_index(repository: Path) -> None:
    index = (repository / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^([\w-]+)$", index, re.MULTILINE)
    pages = {path.stem for path in (repository / "docs").glob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_links_lead_to_files(name: str, repository: Path) -> None:
    text = (repository / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text)
    for target in links + re.findall(r'src(?:set)?="([^"]+)"', text):
        assert (repository / target).exists(), target
