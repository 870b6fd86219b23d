"""``python -m benchmarks.adoption.lines``, for `make lines`: makes regressions, reads which line is named."""

from __future__ import annotations

import argparse
import fnmatch
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.adoption.checkouts import UnavailableError, checkout, environment
from benchmarks.adoption.projects import PROJECTS, Project
from benchmarks.adoption.results import REPOSITORY, commit, sources
from benchmarks.adoption.sessions import pytest_words, variables
from pytest_opprof.compare.common_cause import Beginning, common_causes
from pytest_opprof.compare.document import read_comparison
from pytest_opprof.compare.phrases import name_of

_EDITS: Final = Path(__file__).with_name("edits.toml")
_PAGE: Final = REPOSITORY / "docs" / "lines.md"
# In addition to the projects of `make adoption`: another one without torch.
_MORE: Final = Project(
    name="more-itertools",
    older="10.7.0",
    newer="10.8.0",
    tests=("tests/test_more.py", "tests/test_recipes.py"),
)
_HEAD: Final = """\
# Which line is named

`make lines` makes regressions in public projects, one at a time, by handwritten edits of their code
(`benchmarks/adoption/edits.toml`). With each it runs the project's own tests, and reads what the session
names first. Of {count} regressions, tried with the code of {commit}, the first line named was the edited one
in **{lines}**, and the op was one that it runs in **{ops}**.

| Project | Edit | Named first | Its line | The edited one |
|:---|:---|:---|:---|:---|
"""
_LEAST: Final = {"line": 38 / 40, "op": 39 / 40}  # share of regressions that must be named correctly
TRIED: Final = {project.name: project for project in (*PROJECTS, _MORE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A regression in edits.toml."""

    project: str
    what: str
    file: str
    old: str
    new: str
    tests: Sequence[str]
    line: str
    op: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a session named first.

    Attributes:
        place: The line's text, or else its function.
        op: The op or total.
        is_line: Whether it is the edited line.
        is_op: Whether it is the op that the edited line runs more often.
    """

    place: str
    op: str
    is_line: bool
    is_op: bool


def main(arguments: list[str] | None = None) -> int:
    """Try the edits not yet tried on these sources and print the page; return 1 if too few are right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adoption.lines", description=__doc__)
    parser.add_argument("--only", metavar="PATTERN", default="*", help=f"projects: {', '.join(TRIED)}")
    parser.add_argument("--write", action="store_true", help="write the page to docs/")
    folder = REPOSITORY / "build" / "adoption"
    parser.add_argument("--folder", type=Path, default=folder, help="for checkouts and environment")
    args = parser.parse_args(arguments)
    base = args.folder.resolve()
    base.mkdir(parents=True, exist_ok=True)
    (base / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    edits = [edit for edit in all_edits() if fnmatch.fnmatch(edit.project, args.only)]
    found: list[tuple[Edit, Named]] = []
    for name in dict.fromkeys(edit.project for edit in edits):
        try:
            found += _tried(TRIED[name], [edit for edit in edits if edit.project == name], base)
        except UnavailableError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    text = page(found)
    print(text)
    if args.write:
        _PAGE.write_text(text, encoding="utf-8")
    return 0 if holds([named for _, named in found], tries=len(edits)) else 1


def holds(found: Sequence[Named], *, tries: int) -> bool:
    """Whether all regressions were tried and enough are named correctly."""
    lines, ops = sum(named.is_line for named in found), sum(named.is_op for named in found)
    is_enough = lines >= _LEAST["line"] * tries and ops >= _LEAST["op"] * tries
    if not is_enough or len(found) < tries:
        said = f"{len(found)} of {tries} regressions tried, {lines} lines and {ops} ops named correctly"
        print(said, file=sys.stderr)
    return is_enough and len(found) == tries


def all_edits() -> list[Edit]:
    """The regressions in edits.toml."""
    return [Edit(**edit) for edit in tomllib.loads(_EDITS.read_text(encoding="utf-8"))["edits"]]


def _tried(project: Project, edits: Sequence[Edit], base: Path) -> list[tuple[Edit, Named]]:
    """Save a baseline of the tests that a project's edits name, then apply each edit alone and compare."""
    folder, python = base / project.name, environment(base)
    tree = checkout(project, base, newer=False)
    tests = sorted({test for edit in edits for test in edit.tests})
    store = f"--opprof-store=dir:{folder / 'lines'}"
    kept = folder / "lines.json"
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if known.get("sources") != sources():
        known = {"sources": sources()}
        shutil.rmtree(folder / "lines", ignore_errors=True)
        _session(project, tree, python, [store, "--opprof-save=main", *tests], folder / "lines.log")
    found = []
    for number, edit in enumerate(edits):
        if repr(edit) in known:
            found.append((edit, Named(**known[repr(edit)])))
            continue
        path, document = tree / edit.file, folder / f"lines-{number}.json"
        text = path.read_text(encoding="utf-8")
        if edit.old not in text:
            raise UnavailableError(f"{edit.file} of {project.older} lacks the text to edit: {edit.what}")
        document.unlink(missing_ok=True)
        options = [store, "--opprof-baseline=main", f"--opprof-report=json:{document}"]
        try:
            path.write_text(text.replace(edit.old, edit.new, 1), encoding="utf-8")
            log = folder / f"lines-{number}.log"
            _session(project, tree, python, [*options, *edit.tests], log)
        finally:
            path.write_text(text, encoding="utf-8")
        named = named_first(edit, document)
        found.append((edit, named))
        known[repr(edit)] = asdict(named)
        kept.write_text(json.dumps(known), encoding="utf-8")
        print(f"{project.name}: {edit.what}: {json.dumps(asdict(named))}", file=sys.stderr, flush=True)
    return found


def _session(project: Project, tree: Path, python: Path, options: Sequence[str], log: Path) -> None:
    with log.open("wb") as out:
        subprocess.run(
            [*pytest_words(python, "opprof"), "--opprof-mark=.", *project.options, *options],
            cwd=tree,
            env=variables(project, str(tree)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            check=False,
        )


def named_first(edit: Edit, document: Path) -> Named:
    """The line and op that a comparison's first cause begins with."""
    causes = common_causes(read_comparison(document)) if document.exists() else ()
    beginnings = causes[0].beginnings if causes else ()
    if not beginnings:
        return Named(place="nothing", op="", is_line=False, is_op=False)
    first = beginnings[0]
    op = name_of(first.change) if first.change.op else first.change.metric
    return Named(
        place=_place(first),
        op=op if first.change.metric == "count" or not first.change.op else f"{op} {first.change.metric}",
        is_line=edit.line in _place(first),
        is_op=any(fnmatch.fnmatch(name, edit.op) for name in (op, first.change.metric)),
    )


def _place(beginning: Beginning) -> str:
    line = beginning.change.line
    return (line.text or line.location) if line is not None else beginning.change.cause


def page(found: Sequence[tuple[Edit, Named]]) -> str:
    """The text of docs/lines.md."""
    lines, ops = sum(named.is_line for _, named in found), sum(named.is_op for _, named in found)
    rows = [
        f"| {edit.project} | {edit.what} | {_code(named.op)} | {_code(named.place)} | "
        f"{'yes' if named.is_line else 'NO'} |"
        for edit, named in found
    ]
    return _HEAD.format(count=len(found), commit=commit(), lines=lines, ops=ops) + "\n".join([*rows, ""])


def _code(text: str) -> str:
    shown = text.replace("|", "\\|").replace("`", "'")
    return f"`{shown}`" if text else "—"


if __name__ == "__main__":
    sys.exit(main())
