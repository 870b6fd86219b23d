"""Every command and example of the README and of docs/ works as written."""

import importlib.util
from pathlib import Path

import pytest
from documentation.blocks import Page, all_pages, count, read_page
from documentation.examples_project import ExamplesProject

# These start few processes, none with torch. All others are slow.
QUICK = ("first_steps.md",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.path.name, marks=[] if page.path.name in QUICK else pytest.mark.slow)
        for page in all_pages()
    ],
)
def test_examples_of_a_page_work(page: Page, tmp_path: Path) -> None:
    for library in page.needs:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    project = ExamplesProject(page, tmp_path)
    for block in page.run:
        project.run(block)


def test_skipped_examples_have_a_reason() -> None:
    for page in all_pages():
        for block in page.left_out:
            assert len((block.reason or "").split()) > 2, f"{page.path.name}:{block.line}"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("```console\n$ echo one\ntwo\n```", "it prints"),
        ("```console\n$ exit 3\n```", "ended with 3"),
        ("<!-- example: exit 1 -->\n```console\n$ true\n```", "ended with 0"),
        ("```python\n1 / 0\n```", "ZeroDivisionError"),
        ("```python\n@pytest.mark.profile\ndef test_it():\n    assert 0\n```", "1 failed"),
        ("```ini\n[pytest]\n```", "which file"),
        ("<!-- example: prints one -->\n```python\nprint(1)\n```", "it prints no 'one'"),
        ("```python\nopen('stacks.txt', 'w')\n```", "it writes empty files: stacks.txt"),
    ],
    ids=[
        "other output",
        "failing",
        "not failing",
        "error",
        "failed test",
        "no file",
        "not printed",
        "empty file",
    ],
)
def test_an_example_that_is_wrong_is_found(wrong: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(wrong, encoding="utf-8")
    page = read_page(path)
    (block,) = page.run
    with pytest.raises(AssertionError, match=message):
        ExamplesProject(page, tmp_path).run(block)


def test_a_hidden_block_is_the_begin_of_those_after_it(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    hidden = "<!-- example: hidden\n```python\nnumber = 3\n```\n-->"
    path.write_text(f"{hidden}\n\n```python\nassert number == 3\n```\n", encoding="utf-8")
    page = read_page(path)
    assert [block.hidden for block in page.blocks] == [True, False]
    project = ExamplesProject(page, tmp_path)
    for block in page.run:
        project.run(block)


def test_unknown_comment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- example: skip it -->\n```console\n$ true\n```\n", encoding="utf-8")
    with pytest.raises(ValueError, match="nobody knows what 'example: skip it' means"):
        read_page(path)


def test_a_comment_belongs_to_the_block_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- example: exit 1 -->\nA sentence.\n```console\n$ true\n```\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no block follows 'exit 1'"):
        read_page(path)


def test_shown_output_is_not_an_example(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```text\n$ rm -rf /\n```\n\n```py\ndef step() -> None\n```\n", encoding="utf-8")
    assert read_page(path).blocks == ()


def test_most_examples_are_run() -> None:
    run = sum(count(page.run) for page in all_pages())
    left_out = sum(count(page.left_out) for page in all_pages())
    assert run > 2 * left_out
