"""The corpus of edits: each is saved, edited and compared in real sessions, and its verdict checked.

`make test` runs a tenth of the edits, those of one library and kind in one project; `make test-all` runs each
of them in a project of its own.
"""

import re
from collections import Counter
from collections.abc import Sequence

import pytest
from e2e.conftest import MakeProject
from e2e.corpus_edits import KINDS, LIBRARIES, Edit, all_edits
from e2e.project import INI, Project, Session

EDITS = all_edits()
# NumPy before 2.5 allocates array data outside Python's allocators, so it is not in the recorded memory.
OPTIONS = {"numpy": "opprof_capture = ranges,ops,memory-malloc\n"}
# names are not wrapped
WIDE = {"COLUMNS": "300"}


def tenth(library: str, kind: str) -> list[Edit]:
    """Every tenth edit of those that are judged correctly, of one library and kind."""
    chosen = [edit for edit in EDITS if not edit.wrong][::10]
    return [edit for edit in chosen if (edit.library, edit.kind) == (library, kind)]


def compared(project: Project, edits: Sequence[Edit]) -> Session:
    """A save, the edits, and the session that compares."""
    (library,) = {edit.library for edit in edits}
    project.write("pytest.ini", INI + OPTIONS.get(library, ""))
    for edit in edits:
        project.write(f"{edit.name}/__init__.py", "")
        for name, text in edit.before.items():
            project.write(f"{edit.name}/{name}", text)
    saved = project.pytest("--opprof-save=main")
    assert saved.exit_code == 0
    for edit in edits:
        for name in edit.before.keys() - edit.after.keys():
            (project.folder / edit.name / name).unlink()
        for name, text in edit.after.items():
            project.write(f"{edit.name}/{name}", text)
    return project.pytest("--opprof-baseline=main", "-v", env=WIDE)


def said(session: Session, edit: Edit) -> str:
    """Where the session's verdict differs from the expected one; empty if it does not."""
    _, _, summary = session.stdout.partition("= opprof =")
    (verdict,) = (line.split()[1] for line in summary.splitlines() if line.startswith(f"{edit.test} "))
    if verdict not in edit.verdicts:
        return f"{edit.name}: {verdict}, and not {' or '.join(edit.verdicts)}"
    section = session.failures.get(edit.test, "")
    found = re.search(r"^ *(\S.*?) {2,}\S+( \S+)? -> +\S", section, re.MULTILINE)
    row = found[1] if found else ""
    if row.startswith("all "):
        row = f"{row.removeprefix('all ')}, total"
    # A row names replaced and new ops: ``aten::softmax -> aten::exp + aten::sum``.
    if edit.first not in row.rpartition(" -> ")[2].split(" + "):
        return f"{edit.name}: {row or 'no row'} is first, and not {edit.first or 'no row'}"
    named = re.search(r"^(\S+\.py):\d+ in .*\n +(\S.*)$", section, re.MULTILINE)
    line = f"{named[1].removeprefix(f'{edit.name}/')}: {named[2]}" if named else "no line"
    return f"{edit.name}: {line} is named, and not {edit.line}" if edit.line not in {"", line} else ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_tenth_is_judged_as_by_a_reviewer(make_project: MakeProject, library: str, kind: str) -> None:
    if library != "python":
        pytest.importorskip(library)
    edits = tenth(library, kind)
    session = compared(make_project(f"{library} {kind}"), edits)
    assert [wrong for edit in edits if (wrong := said(session, edit))] == []
    assert session.failures.keys() == {edit.test for edit in edits if edit.exit_code}
    assert session.exit_code == max(edit.exit_code for edit in edits)


@pytest.mark.slow
@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(
            edit,
            id=f"{edit.library}-{edit.kind}-{edit.name}",
            marks=[pytest.mark.xfail(reason=edit.wrong)] if edit.wrong else [],
        )
        for edit in EDITS
    ],
)
def test_an_edit_is_judged_as_by_a_reviewer(project: Project, edit: Edit) -> None:
    if edit.library != "python":
        pytest.importorskip(edit.library)
    session = compared(project, [edit])
    assert said(session, edit) == ""
    assert session.exit_code == edit.exit_code


def test_risen_ops_have_a_line() -> None:
    """Only a total of allocated memory has none. At most one in twenty ops is the wrong one."""
    edits = [edit for edit in EDITS if edit.kind == "more" and not edit.first.endswith(", total")]
    assert len(edits) >= 40
    assert [edit.name for edit in edits if not edit.line] == []
    assert 20 * sum(bool(edit.wrong) for edit in edits) <= len(edits)


def test_the_corpus_is_as_large_as_it_says() -> None:
    many = Counter((edit.library, edit.kind) for edit in EDITS)
    assert set(many) == {(library, kind) for library in LIBRARIES for kind in KINDS}
    assert min(sum(many[library, kind] for library in LIBRARIES) for kind in KINDS) >= 60
    assert all(tenth(*group) for group in many)
    assert 10 * sum(len(tenth(*group)) for group in many) >= len(EDITS)
