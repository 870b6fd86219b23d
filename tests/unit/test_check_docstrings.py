"""The check of docstrings finds its faults."""

from pathlib import Path

import pytest
from check_docstrings import faults

FUNCTION = '''def f(test, *, value):
    """Do.

    Args:
        test: {entry}
            and more of it.

    Returns:
        A sentence
        that goes on.
    """
'''


@pytest.mark.parametrize(
    "entry", ["The test.", "``None`` for all.", "op_result of the window.", "0 for none."]
)
def test_capitalized_entries_pass(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "f.py"
    path.write_text(FUNCTION.format(entry=entry))
    assert list(faults(path)) == []


def test_lower_case_entry_is_found(tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text(FUNCTION.format(entry="the test."))
    assert [fault.partition(": ")[0] for fault in faults(path)] == [f"{path}:5"]
