"""``opprof view``: show a trace in Perfetto, base beside head if a test has both."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.cli.output import print_lines
from pytest_opprof.cli.project import Project
from pytest_opprof.report.text import escaped
from pytest_opprof.units import check_between

if TYPE_CHECKING:
    from pytest_opprof.baselines.viewing import Viewable

HELP = "show a test's traces in Perfetto, base beside head"
EXAMPLE = "opprof view test_step"

_MOST_PORT = 65_535
_SIDES = ("both", "base", "head")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TEST|TRACE|RUN",
        help="part of the name of a test with traces, or a file of a trace, a run or a comparison; "
        "without it, list the tests",
    )
    parser.add_argument(
        "--test", metavar="TEXT", help="in a run or comparison, the test whose id contains this"
    )
    parser.add_argument("--side", choices=_SIDES, default="both", help="default: %(default)s, as one trace")
    parser.add_argument(
        "--traces",
        type=Path,
        metavar="DIR",
        help="the folder of traces; default: .opprof/traces of this project",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address alone, and open nothing")
    parser.add_argument(
        "--ui", metavar="URL", help="a Perfetto page of your own; default: https://ui.perfetto.dev"
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        help="the port to serve on; default: 9001, the only one that ui.perfetto.dev may read",
    )


def run(args: argparse.Namespace) -> int:
    """Serve the trace until the page has read it."""
    from pytest_opprof.baselines.keys import TRACES
    from pytest_opprof.traces.merged import merge_files

    check_between("--port", args.port, 0, _MOST_PORT)
    folder = args.traces or Project.here().folder / TRACES
    files = _files(args, folder)
    if len(files) > 1:
        base, head = files
        with tempfile.TemporaryDirectory(prefix="opprof-view-") as place:
            both = Path(place) / head.name.replace(".head.json.gz", ".both.json")
            print_lines([f"base and head side by side, marked ops: {merge_files(base, head, both)}"])
            _serve(both, args)
    elif files:
        _serve(files[0], args)
    return 0


def _files(args: argparse.Namespace, folder: Path) -> tuple[Path, ...]:
    """The traces to show; none if the tests were listed instead."""
    from pytest_opprof.baselines import viewing
    from pytest_opprof.compare.document import read_comparison
    from pytest_opprof.results.files import parse, read_bytes, read_run
    from pytest_opprof.results.schema import Contract, contract_of

    where = [f"--traces={args.traces}"] if args.traces else []
    if args.target is None:
        return _listed(viewing.viewable_tests(folder), folder, command=["opprof", "view", *where])
    path = Path(args.target)
    if not os.path.isfile(path):  # noqa: PTH113  # pathlib raises if a node id is too long for a file's name
        return viewing.viewable_by_name(folder, args.target).of(args.side)
    if not viewing.is_document(path):
        return (path,)
    document = parse(read_bytes(path), where=str(path))
    if contract_of(document, where=str(path)) is Contract.COMPARISON:
        tests = viewing.viewable_of_tests(folder, (test.node_id for test in read_comparison(path).tests))
    else:
        tests = viewing.viewable_of_run(folder, read_run(path))
    if args.test is not None:
        return viewing.viewable_like(tests, args.test, folder=folder).of(args.side)
    return _listed(tests, folder, command=["opprof", "view", *where, args.target, "--test"])


def _listed(tests: list[Viewable], folder: Path, *, command: list[str]) -> tuple[()]:
    from pytest_opprof.results.files import shown

    print_lines(escaped(f"{one.test}: {', '.join(one.files)}") for one in tests)
    many = "1 test has" if len(tests) == 1 else f"{len(tests) or 'no'} tests have"
    print_lines(
        [escaped(f"{many} traces in {shown(folder)}" + (f": {shlex.join(command)} TEST" if tests else ""))]
    )
    return ()


def _serve(path: Path, args: argparse.Namespace) -> None:
    from pytest_opprof.traces.serving import PERFETTO, PORT, Viewer, serve_trace

    viewer = Viewer(url=args.ui or PERFETTO, port=PORT if args.port is None else args.port)

    def ready(url: str) -> None:
        print_lines([url, "serving until the page has read it; Ctrl-C ends it sooner"])
        sys.stdout.flush()  # a reader of the output waits for it
        if not args.no_browser:
            webbrowser.open(url)

    serve_trace(path, viewer, ready=ready)
