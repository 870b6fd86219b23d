"""The edits of `python -m mutants --random`, and the tests that each is tried with."""

from pathlib import Path

import pytest
from mutants.covering import Covering
from mutants.sample import digest_of_sources, drawn
from mutants.single_edits import SingleEdit, single_edits

PYTHON = '''\
"""A docstring with 1 < 2."""
if TYPE_CHECKING:
    import nothing

@dataclass(frozen=True)
class A:
    kept: int = 3

    def told(self, many: int) -> bool:
        assert many > 0, "always"
        note(many)
        return not self.kept <= many
'''
C = """\
/* 1 < 2 */
#include "a.h"
static bool told(const kept *k) {
    note(k, "1 < 2");
    free(k->text);
    return k->many > 7 && !k->lost;
}
"""


def edits_of(folder: Path, name: str, text: str) -> list[tuple[int, str, str]]:
    (folder / name).write_text(text, encoding="utf-8")
    return [(edit.line, edit.old.strip(), edit.new.strip()) for edit in single_edits(folder, name)]


def test_effective_python_code_is_edited(tmp_path: Path) -> None:
    assert edits_of(tmp_path, "a.py", PYTHON) == [
        (7, "3", "4"),
        (11, "note(many)", "pass"),
        (12, "not", ""),
        (12, "not self.kept <= many", "None"),
        (12, "<=", "<"),
    ]


def test_effective_c_code_is_edited(tmp_path: Path) -> None:
    assert edits_of(tmp_path, "a.c", C) == [
        (4, 'note(k, "1 < 2");', ";"),
        (6, ">", ">="),
        (6, "7", "8"),
        (6, "&&", "||"),
        (6, "!", ""),
    ]


def test_each_edit_changes_one_place(tmp_path: Path) -> None:
    text = "ä = b < c < d\n"
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    first, second = single_edits(tmp_path, "a.py")
    assert (first.applied(text), second.applied(text)) == ("ä = b <= c < d\n", "ä = b < c <= d\n")
    assert str(second) == "a.py:1: < -> <="
    with pytest.raises(AssertionError, match="the file is another"):
        second.applied(text.replace("b", "bb"))


def test_a_seed_draws_the_same_edits_again(repository: Path) -> None:
    edits = drawn(repository, many=40, seed=1)
    assert edits == drawn(repository, many=40, seed=1) != drawn(repository, many=40, seed=2)
    for edit in edits:
        text = (repository / edit.file).read_text(encoding="utf-8")
        assert edit.applied(text) != text


def test_an_edit_is_tried_with_the_tests_of_its_line(tmp_path: Path) -> None:
    """The module's own test file comes first, and whole: its newest tests are in no measurement."""
    own = "tests/unit/compare/test_a.py"
    seconds = {f"{own}::test_own": 3.0, "fast": 1.0, "slow": 9.0, "other": 0.1}
    lines = {2: ["fast", f"{own}::test_own", "slow"], 5: ["other"]}
    covering = Covering(seconds, {"pytest_opprof/compare/a.py": lines})
    edit = SingleEdit(file="pytest_opprof/compare/a.py", start=0, line=4, old="1", new="2")
    assert covering.of(edit, root=tmp_path, longest_s=90) == [["fast", "slow"]]
    (tmp_path / own).parent.mkdir(parents=True)
    (tmp_path / own).touch()
    assert covering.of(edit, root=tmp_path, longest_s=90) == [[own], ["fast", "slow"]]
    assert covering.of(edit, root=tmp_path, longest_s=5) == [[own], ["fast"]], "no longer than that"


def test_a_new_test_changes_no_edit(tmp_path: Path) -> None:
    module = tmp_path / "pytest_opprof" / "a.py"
    module.parent.mkdir()
    module.write_text("a = 1\n", encoding="utf-8")
    first = digest_of_sources(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").touch()
    assert digest_of_sources(tmp_path) == first
    module.write_text("a = 2\n", encoding="utf-8")
    assert digest_of_sources(tmp_path) != first
