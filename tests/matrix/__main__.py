"""``python -m matrix``, run by `make test-matrix`: torch × Python, and prints docs/compatibility.md."""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from matrix.environments import REPOSITORY, UnavailableError, environment_of
from matrix.page import page
from matrix.results import Answers, Result, commit, load, read, save, sources
from matrix.rows import COLUMNS, ROWS, Row

PAGE: Final = REPOSITORY / "docs" / "compatibility.md"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m matrix", description=__doc__)
    parser.add_argument(
        "--only", metavar="PATTERN", default="*", help=f"rows: {', '.join(row.name for row in ROWS)}"
    )
    parser.add_argument("--column", metavar="PATTERN", default="*", help="columns, such as 'ops'")
    parser.add_argument("--again", action="store_true", help="also ask anew what did not hold")
    parser.add_argument(
        "--folder", type=Path, default=REPOSITORY / "build" / "matrix", help="of the environments"
    )
    parser.add_argument("--write", action="store_true", help="keep the page in docs/")
    args = parser.parse_args(arguments)
    args.folder.mkdir(parents=True, exist_ok=True)
    kept = args.folder.resolve() / "results"
    now = Answers(commit=f"{commit()}, {datetime.now(UTC):%Y-%m-%d}", sources=sources())
    for row in (row for row in ROWS if fnmatch.fnmatch(row.name, args.only)):
        before = load(kept).get(row.name, now)
        answers = before if before.sources == now.sources else now
        cells = dict(answers.cells)
        answers = replace(answers, cells=cells)
        keep = partial(save, kept, row.name, answers)
        try:
            tried(row, cells, args.folder.resolve(), columns=args.column, again=args.again, on_cell=keep)
        except UnavailableError as error:
            cells[""] = Result(holds=False, detail=str(error))
            print(f"{row.name}: {error}", file=sys.stderr, flush=True)
            keep()
    found = load(kept)
    text = page(ROWS, found)
    print(text)
    if args.write:
        PAGE.write_text(text, encoding="utf-8")
    return int(not all(cell.holds for row in found.values() for title, cell in row.cells.items() if title))


def tried(
    row: Row,
    cells: dict[str, Result],
    base: Path,
    *,
    columns: str,
    again: bool,
    on_cell: Callable[[], None],
) -> None:
    """Ask the questions of a row that have no answer yet.

    Args:
        row: The environment.
        cells: Its answers by column's title, to which the new ones are added.
        base: The folder of all environments.
        columns: Which ones, as a pattern of titles.
        again: Also those that were answered with no.
        on_cell: Called after each answer.

    Raises:
        UnavailableError: The environment cannot be had here.
    """
    cells.pop("", None)
    asked = [
        column
        for column in COLUMNS
        if column.is_asked(row)
        and fnmatch.fnmatch(column.title, columns)
        and (column.title not in cells or (again and not cells[column.title].holds))
    ]
    if not asked:
        return
    environment = environment_of(row, base)
    for column in asked:
        log = environment.folder / f"{column.title.replace('/', ' ')}.log"
        started = time.monotonic()
        cells[column.title] = read(environment.run(column.command, log, limit_s=column.limit_s), log)
        took, cell = time.monotonic() - started, cells[column.title]
        said = "yes" if cell.holds else f"{cell.detail} ({log})"
        print(f"{row.name}: {column.title}: {said}, {took:.0f} s", file=sys.stderr, flush=True)
        on_cell()


if __name__ == "__main__":
    sys.exit(main())
