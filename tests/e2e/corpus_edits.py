"""The edits of `tests/e2e/corpus`: each is a file that a reviewer reads as a diff.

A file says in a sentence what the change does, then what the session that compares must say, then shows each of the
project's files: lines of both versions begin with a blank, lines that the change removes with ``-``, lines that it adds
with ``+``. ``corpus/torch/more/clone_in_residual.diff`` is about torch, does more, and is seen by the verdict on
`test_clone_in_residual`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
LIBRARIES = ("python", "numpy", "torch")
KINDS = ("more", "same")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of a small project, and what a reviewer says of it.

    Attributes:
        name: The stem of its file.
        library: What its code is made of: a folder of the corpus.
        kind: ``more`` where the code does more work after the change, else ``same``.
        what: The change, in a sentence.
        verdicts: Of its test: one, or those that are equally right.
        first: The op or total that the failure names first; "" where the session passes.
        line: The line that the failure names first, with its file: ``model.py: skip = x.clone()``. "" where no
            line that was edited calls an op, or the failure has no op.
        exit_code: Of the session that compares, where the edit is alone in it.
        wrong: Why the product answers something else today; "" where it does not.
        before: The project's files, by name.
        after: The same files after the change; one that it deletes is not among them.
    """

    name: str
    library: str
    kind: str
    what: str
    verdicts: tuple[str, ...]
    first: str
    line: str
    exit_code: int
    wrong: str
    before: Mapping[str, str]
    after: Mapping[str, str]

    @property
    def test(self) -> str:
        """The test whose verdict is expected."""
        return f"test_{self.name}"


def all_edits() -> list[Edit]:
    """Every edit, by library and kind."""
    return [
        read_edit(path)
        for library in LIBRARIES
        for kind in KINDS
        for path in sorted((CORPUS / library / kind).glob("*.diff"))
    ]


def read_edit(path: Path) -> Edit:
    """The edit that a file of the corpus shows."""
    head, *files = path.read_text(encoding="utf-8").split("\n=== ")
    what, _, fields = head.partition("\n\n")
    expected = dict(line.split(": ", maxsplit=1) for line in fields.strip().splitlines())
    edit = Edit(
        name=path.stem,
        library=path.parts[-3],
        kind=path.parts[-2],
        what=" ".join(what.split()),
        verdicts=tuple(expected.pop("verdict").split(" or ")),
        first=expected.pop("first", ""),
        line=expected.pop("line", ""),
        exit_code=int(expected.pop("exit")),
        wrong=expected.pop("wrong", ""),
        before=_version(files, without="+"),
        after=_version(files, without="-"),
    )
    assert not expected, f"{path}: unknown fields: {expected}"
    file, _, text = edit.line.partition(": ")
    lines = {line.strip() for line in edit.after.get(file, "").splitlines()}
    assert not edit.line or text in lines, f"{path}: the project has no such line: {edit.line}"
    assert edit.before != edit.after, f"{path}: the change changes nothing"
    return edit


def _version(files: list[str], *, without: str) -> dict[str, str]:
    """One side of the shown files. A file without a line on this side is not there."""
    found = {}
    for shown in files:
        name, *lines = shown.splitlines()
        strange = [line for line in lines if line and line[0] not in " +-"]
        assert not strange, f"{name}: a line begins with a blank, + or -: {strange}"
        kept = [line[1:] for line in lines if line[:1] != without]
        if any(kept):
            found[name] = "\n".join(kept).strip("\n") + "\n"
    return found
