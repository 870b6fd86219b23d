"""``opprof init``: set a project up. Safe to run again: it adds only what is missing."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_opprof.errors import UsageError

if TYPE_CHECKING:
    from pytest_opprof.cli.pytest_config import Section

HELP = "set a project up: pytest's configuration and .gitignore"
EXAMPLE = "opprof init --try tests/models -k forward"

_NEXT = """
next:{}
    pytest --opprof-save=main          on the main branch: record what its tests do
    pytest --opprof-baseline=main      on your branch: fail if they do more
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="the project's folder (default: this one)"
    )
    parser.add_argument("--store", metavar="URI", help="where baselines will be kept, default: dir:.opprof")
    parser.add_argument(
        "--try",
        dest="try_args",
        nargs=argparse.REMAINDER,
        metavar="PYTEST ARGUMENT",
        help="run the tests twice, all of them marked, and add opprof_mark for those with equal counts; "
        "pytest gets all that follows",
    )


def run(args: argparse.Namespace) -> int:
    """Extend the project's files, and say what changed."""
    from pytest_opprof.baselines.archive import open_store
    from pytest_opprof.compare.verdicts import DEFAULT_FAIL_ON

    section = _section(args.folder)
    given = _store(args.store, section)
    store = open_store(given, root=args.folder)
    # Write the address that the user gave: the store's own URI hides a password.
    uri = given if "://" in given else store.uri
    values = {"opprof_store": uri, "opprof_fail_on": DEFAULT_FAIL_ON}
    if missing := section.missing(values):
        section.extend(values)
        print(f"{section.path}: [{section.title}] now sets {', '.join(missing)}")
    else:
        print(f"{section.path}: [{section.title}] sets everything already")
    kind, _, path = store.uri.partition(":")
    print(_ignore(args.folder, path) if kind == "dir" else f"nothing to ignore for {store.uri}")
    are_marked = args.try_args is not None and _propose(args.folder, args.try_args)
    print(_NEXT.format("" if are_marked else " mark a test with @pytest.mark.profile, then"), end="")
    return 0


def _section(folder: Path) -> Section:
    """The section to extend; UsageError in a folder of a project that is configured above."""
    from pytest_opprof.cli.pytest_config import enclosing_section, pytest_section

    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    around = enclosing_section(folder)
    if around is not None and around.path.parent != folder.resolve():
        raise UsageError(
            f"{folder}: its project is configured in {around.path}. To set that up: "
            f"opprof init {shlex.quote(str(around.path.parent))}"
        )
    return pytest_section(folder)


def _store(given: str | None, section: Section) -> str:
    """The store's URI as given, else as configured; UsageError if they differ."""
    from pytest_opprof.addresses import shown
    from pytest_opprof.baselines.store import kind_and_place
    from pytest_opprof.cli.project import Project

    configured = Project(root=section.path.parent, where=str(section.path), values=dict(section.values)).store
    is_set = "opprof_store" in section.values
    if given and is_set and kind_and_place(given) != kind_and_place(configured):
        raise UsageError(
            f"--store={shown(given)}: opprof_store is {shown(configured)} in {section.path}. Change it there"
        )
    return given or configured


def _propose(folder: Path, pytest_args: list[str]) -> bool:
    """Print the tests worth marking, and set opprof_mark unless it is set; return whether there are any."""
    from pytest_opprof.cli.proposal import lines_of, reason_of, try_tests
    from pytest_opprof.cli.pytest_config import pytest_section

    tests = try_tests(folder, pytest_args)
    lines = lines_of(tests)
    print("opprof_mark =")
    width = max(map(len, lines), default=0)
    for line in lines:
        print(f"    {line:{width}}   # {reason_of(line, tests)}")
    refused = ((test.node_id, test.refusal) for test in tests if test.refusal)
    for node_id, why in dict.fromkeys(refused):
        if f"!{node_id}" not in lines:
            print(f"not marked: {node_id}: {why}")
    section = pytest_section(folder)
    if not lines:
        print("no test to mark: name the parts that matter with record_function")
    elif section.missing({"opprof_mark": lines}):
        section.extend({"opprof_mark": lines})
        print(f"{section.path}: [{section.title}] now sets opprof_mark")
    else:
        print(f"{section.path}: [{section.title}] sets opprof_mark already: change it by hand")
    return bool(lines)


def _ignore(folder: Path, store: str) -> str:
    """Make git ignore the baselines; other files in the store's folder may be committed."""
    from pytest_opprof.results.files import write_bytes

    path = PurePosixPath(store)
    if path.is_absolute() or ".." in path.parts:
        return f"{store}: nothing to ignore, because it is outside the project"
    file = folder / ".gitignore"
    if not file.exists() and not any(
        (parent / ".git").exists() for parent in (folder, *folder.resolve().parents)
    ):
        return "no git repository: nothing to ignore"
    text = file.read_bytes().decode("utf-8", "surrogateescape") if file.exists() else ""
    lines = {line.strip().strip("/") for line in text.splitlines()}
    wanted = [f"/{path}/*/", f"/{path}/.lock"]
    # A line for the whole folder covers both.
    missing = [] if str(path) in lines else [line for line in wanted if line.strip("/") not in lines]
    if not missing:
        return f"{file}: ignores {path} already"
    end = "" if not text or text.endswith("\n") else "\n"
    write_bytes(file, (text + end + "\n".join(missing) + "\n").encode("utf-8", "surrogateescape"))
    return f"{file}: now ignores {', '.join(missing)}"
