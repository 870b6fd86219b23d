"""Pages for pull requests: their layout, and what is cut if they are too long."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from support.documents.compared import (
    MAIN,
    against,
    cloning,
    compared,
    gone,
    mixed,
    named,
    regressions,
    slower,
    without_a_number,
)
from support.documents.strategies import simple_run
from support.html.rendered import comments, elements, pages, tables, text_of

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.errors import UsageError
from pytest_opprof.report.markdown import Links, gitlab_note, job_summary, markdown_comment

MARKER = "<!-- opprof:sticky v1 key=0123456789abcdef head=5d6e7f8 run=1.1 -->"
FAILING = {"ERROR", "REGRESSED", "MISSING", "INCONCLUSIVE"}


def changes(page: ET.Element) -> list[list[list[str]]]:
    """The tables of changes: test, verdict, what, base, head, change, why."""
    found = []
    for head, *rows in tables(page):
        test = ""
        table = []
        for cell, *numbers in rows if head == ["what", "base", "head", "change"] else ():
            first, *rest = cell.split("\n")
            if first.split(" ")[0].startswith("test_") or len(rest) > 1:
                test, verdict = first.rsplit(" ", 1)
                first, *rest = rest or [""]
            else:
                first, verdict = first.rsplit(" ", 1)
            table.append([test, verdict, first, *numbers, *(rest or [""])])
        if table:
            found.append(table)
    return found


def test_the_verdict_is_the_first_thing_to_read() -> None:
    marker, headline, *_ = markdown_comment(cloning(), marker=MARKER).splitlines()
    assert (marker, headline) == (MARKER, "### opprof: REGRESSED: 1 test")
    for page in pages(markdown_comment(cloning(), marker=MARKER)):
        assert comments(page) == [MARKER.removeprefix("<!--").removesuffix("-->")]
        assert next(elements(page)).tag == "h3"


def test_rows_say_op_numbers_and_cause() -> None:
    for page in pages(markdown_comment(cloning())):
        assert tables(page)[0] == [
            ["op", "base", "head", "change"],
            ["aten::clone", "0", "2", "+2"],
            ["\u2003aten::copy_", "12", "14", "+2"],
        ]
        assert "Cause 1: called by the test" in text_of(page)
        assert "(OP103)" in text_of(page)
        assert "test_step 25 ops (+4)" in text_of(page)
        head, *rows = tables(page)[1]
        assert head == ["what", "base", "head", "change"]
        assert rows == [
            ["test_step REGRESSED\naten::clone count\nnew, called by the test", "0", "2", "+2"],
            ["aten::copy_ count REGRESSED\ncalled by aten::clone", "12", "14", "+2"],
            ["ops, total REGRESSED", "21", "25", "+4"],
        ]
        assert "main@1a2b3c4 → 5d6e7f8+dirty" in text_of(page)


def test_every_verdict_is_counted_and_failures_come_first() -> None:
    for page in pages(markdown_comment(mixed())):
        text = text_of(page)
        assert "opprof: REGRESSED: 2 of 8 tests" in text
        assert (
            "1 in error, 2 regressed, 1 inconclusive, 1 changed, 1 improved, 1 new, 1 passed · nothing dropped"
            in text
        )
        assert "Cause 1: " in text
        assert "Cause 2: aten::mul.count over its limit (<= 5)" in text
        shown = changes(page)
        verdicts = [row[1] for row in shown[0]]
        failing = [verdict in FAILING for verdict in verdicts]
        assert failing == sorted(failing, reverse=True)
        assert verdicts.count("REGRESSED") == 0, "its causes are told above"
        assert [row[1] for row in shown[1]] == ["REGRESSED"] * 3
        (all_tests,) = (table for table in tables(page) if table[0][0] == "test")
        assert len(all_tests) == 1 + 8


def test_next_step_can_be_copied() -> None:
    for page in pages(markdown_comment(cloning())):
        said = [text_of(code) for code in page.iter("code")]
        assert 'opprof accept tests/test_model.py::test_step --reason "..."' in said
        assert "pytest tests/test_model.py::test_step --opprof-baseline=main" in said


def test_ab_shows_times_and_the_machines_noise() -> None:
    for page in pages(markdown_comment(slower())):
        rows = {(row[0], row[2]): row for table in changes(page) for row in table}
        assert rows["test_1", "time"][3:] == [
            *("4.00 ms", "4.37 ms", "+9.4 %"),
            "aten::addmm +358 µs: same calls, slower",
        ]
        assert rows["test_0", "aten::addmm count"][3:6] == ["2", "3", "+1"]
        assert "2 regressed · 12 processes a side" in text_of(page)
        assert "control (base against base): nothing flagged, noise floor" in text_of(page)


def test_single_run_is_shown_without_a_baseline() -> None:
    page, _ = pages(markdown_comment(compared(None, simple_run(named("test_step", {"aten::mul": 3})))))
    assert "opprof: measured 1 test" in text_of(page)
    assert "compared with nothing" in text_of(page)
    assert ["test_step measured", "3", "3.0 µs"] in tables(page)[0]


def test_empty_run_is_reported() -> None:
    assert markdown_comment(compared(None, simple_run())).startswith("### opprof: no test was measured\n")


def test_advisories_past_the_first_are_counted() -> None:
    comparison = cloning()
    told = tuple(f"advisory {number}" for number in range(8))
    comparison = replace(comparison, tests=(replace(comparison.tests[0], advisories=told),))
    text = markdown_comment(comparison)
    assert "`advisory 4`" in text
    assert "`advisory 5`" not in text
    assert "- ... and 3 more advisories" in text


def test_notes_past_the_fifth_are_counted() -> None:
    comparison = replace(cloning(), notes=tuple(f"note {number}" for number in range(6)))
    assert "\n- `note 4`\n- ... and 1 more note\n" in markdown_comment(comparison)
    assert "more note" not in markdown_comment(replace(comparison, notes=comparison.notes[:5]))


def test_function_without_a_line_is_linked_to_its_file() -> None:
    comparison = without_a_number(cloning(places={"forward, src/model.py:41": 6}))
    text = markdown_comment(comparison, links=Links(source="https://forge.example/blob/5d6e7f8/"))
    for page in pages(text):
        (link,) = page.iter("a")
        assert (text_of(link), link.get("href")) == (
            "src/model.py",
            "https://forge.example/blob/5d6e7f8/src/model.py",
        )


def test_missing_test_is_not_run_again() -> None:
    for page in pages(markdown_comment(gone())):
        assert "intended? opprof accept tests/test_model.py::test_gone" in text_of(page)
        assert "see it again" not in text_of(page)


def test_ab_is_run_again_as_an_ab() -> None:
    for page in pages(markdown_comment(against("HEAD~3", slower()))):
        text = text_of(page)
        assert "see it again: opprof ab 'HEAD~3' tests/test_a.py::test_1" in text
        assert "intended? opprof accept --comparison FILE tests/test_a.py::test_0" in text
        assert "Run opprof ab 'HEAD~3' -o FILE before you accept" in text
        assert "--opprof-baseline" not in text


def test_caller_supplies_the_links() -> None:
    links = Links(summary="https://ci.example/run/1?a=b c", document="https://ci.example/d", traces=None)
    for page in pages(markdown_comment(cloning(), links=links, self_reported=True)):
        assert [(text_of(link), link.get("href")) for link in page.iter("a")] == [
            ("Job", "https://ci.example/run/1?a=b%20c"),
            ("Comparison file", "https://ci.example/d"),
        ]
        assert "The pull request's own code measured these numbers" in text_of(page)
    assert "own code" not in markdown_comment(cloning())
    with pytest.raises(UsageError, match=r"'javascript:x' is not an address"):
        markdown_comment(cloning(), links=Links(traces="javascript:x"))


@pytest.mark.parametrize("many", [11, 60, 200])
def test_regressions_are_kept_before_all_else(many: int) -> None:
    comparison = regressions(many, ops=2)
    text = markdown_comment(comparison)
    assert len(text) <= 60_000
    for page in pages(text):
        shown = [tuple(row[:3]) for table in changes(page) for row in table]
        expected = {
            (f"test_{at}", "REGRESSED", what)
            for at in range(many)
            for what in ("aten::item0 count", "aten::item1 count", "ops, total")
        }
        assert expected <= set(shown)
        # not folded: the cause, and its number of tests
        assert [row[0] for row in tables(page)[0]] == ["op", "aten::item0", "aten::item1"]
        assert f"and {many - 5} more tests" in text_of(page)
    assert "of tests that fail, see" not in text


def test_omitted_rows_are_counted_at_the_top() -> None:
    comparison = regressions(60, ops=60)
    links = Links(summary="https://ci.example/1")
    text = markdown_comment(comparison, links=links)
    assert len(text.encode()) <= 60_000
    shown = sum(map(len, changes(pages(text)[0])))
    missing = 60 * 61 - shown
    assert (
        f"**{missing} more rows of tests that fail, see [the job summary](<https://ci.example/1>).**" in text
    )
    assert text.index("of tests that fail, see") < text.index("| `")
    assert "rows omitted, see [the job summary]" in text
    # a summary has room for all of them
    summary = job_summary(comparison)
    assert len(summary.encode()) <= 1_000_000
    assert "of tests that fail, see" not in summary


def test_rows_get_shorter_before_any_is_left_out() -> None:
    comparison = regressions(
        120, ops=5, stem=f"a_rather_long_name{'_' * 40}of_an_op::that_is_called_more_often_"
    )
    text = markdown_comment(comparison)
    assert "of tests that fail, see" not in text
    assert "a_rather_long_...ed_more_often_3" in text


@pytest.mark.parametrize("limit", [2_000, 5_000, 20_000, 60_000])
@pytest.mark.parametrize("comparison", [mixed(), regressions(30, ops=3)], ids=["mixed", "regressions"])
def test_a_page_keeps_within_its_limit(limit: int, comparison: Comparison) -> None:
    for text in (
        markdown_comment(comparison, limit=limit, marker=MARKER),
        gitlab_note(comparison, limit=limit),
    ):
        assert len(text.encode()) <= limit
        for page in pages(text):
            assert all(len(row) == len(table[0]) for table in tables(page) for row in table)
    assert len(job_summary(comparison, limit_bytes=limit).encode()) <= limit


def test_note_links_to_the_artifacts() -> None:
    text = gitlab_note(regressions(30, ops=3), limit=3_000, marker=MARKER)
    assert text.startswith(MARKER)
    assert "more rows of tests that fail, see the job's artifacts." in text


def test_maximum_number_of_rows_is_cut_and_counted() -> None:
    comparison = cloning()
    (test,) = comparison.tests
    *others, change = test.changes
    changes = tuple(replace(change, op=f"aten::op{at}") for at in range(20_000))
    text = markdown_comment(replace(comparison, tests=(replace(test, changes=(*others, *changes)),)))
    assert len(text.encode()) <= 60_000
    shown = text.count("**REGRESSED**")
    assert shown > 500
    assert f"**{20_000 + len(others) - shown} more rows of tests that fail, see the job summary.**" in text


def test_a_line_is_linked_to_its_commit() -> None:
    links = Links(source="https://github.com/o/r/blob/5d6e7f8/")
    for page in pages(markdown_comment(cloning(places={"f, src/a model#.py:41": 6}), links=links)):
        assert [link.get("href") for link in page.iter("a")] == [
            "https://github.com/o/r/blob/5d6e7f8/src/a%20model%23.py#L41"
        ]
        assert "Cause 1: src/a model#.py:41 in f" in text_of(page)


@pytest.mark.parametrize("file", ["../../../settings", "/etc/passwd"])
def test_comparison_cannot_choose_link_targets(file: str) -> None:
    links = Links(source="https://github.com/o/r/blob/5d6e7f8/")
    for page in pages(markdown_comment(cloning(places={f"f, {file}:41": 6}), links=links)):
        assert list(page.iter("a")) == []


@pytest.mark.parametrize(
    ("many", "told"),
    [(3, ""), (4, "... and 1 more place: perhaps m.py:3 in f"), (14, "perhaps m.py:8 in f and 1 more")],
    ids=["three", "four", "fourteen"],
)
def test_places_past_the_third_are_named(many: int, told: str) -> None:
    ops = {f"aten::op{at}": f"f, m.py:{at}" for at in range(many)}
    base, head = (named("test_step", dict.fromkeys(ops, count)) for count in (1, 2))
    rows = tuple(replace(row, places={ops[row.name]: 6}) for row in head.ops)
    comparison = compared(simple_run(base, name="main", commit=MAIN), simple_run(replace(head, ops=rows)))
    for page in pages(markdown_comment(comparison)):
        before, _, after = text_of(page).partition("intended?")
        assert after
        assert (" more place" in before) == bool(told)
        assert told in before
