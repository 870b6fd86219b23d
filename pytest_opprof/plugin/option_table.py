"""The command line's options and their ini keys, an entry each.

Every pytest session imports this module, so it imports nothing of ours, and has no dataclass: to make one
takes a millisecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pytest

CAPTURE: Final = (
    "ranges",
    "ops",
    "cuda-if-used",
    "cuda",
    "ops-itt",
    "itt",
    "nvtx",
    "python",
    "cpp",
    "memory-python",
    "memory-malloc",
)


class Option(NamedTuple):
    """An option of the command line; its ini key has underscores."""

    name: str  # without the dashes before it
    metavar: str  # its value's name in ``--help``
    help: str  # what it does, with ``%%`` for a percent sign
    default: str | None = None  # the value if neither the command line nor the ini file sets it
    is_list: bool = False  # it may be repeated; in the ini file one a line

    @property
    def dest(self) -> str:
        """The name of its value, and of its ini key."""
        return self.name.replace("-", "_")


OPTIONS: Final = (
    Option(
        name="opprof",
        metavar="on|off|only|always",
        default="on",
        help="profile marked tests; off: no test; only: run marked tests alone; always: also record "
        "every test, to show what ran last if its process dies",
    ),
    Option(
        name="opprof-mark",
        metavar="TESTS",
        is_list=True,
        help="profile tests without a marker: a path, a node id, a pattern of node ids, or -k EXPRESSION; "
        "arguments of the marker may follow; a leading ! excludes tests; may be repeated",
    ),
    Option(
        name="opprof-profile",
        metavar="ARGUMENTS",
        help="arguments for every profiled test that does not set them, such as warmup=2, active=5",
    ),
    Option(
        name="opprof-limits",
        metavar="LIMIT",
        is_list=True,
        help="a budget for every profiled test without limits of its own: a preset such as no_sync, or "
        "METRIC=BOUND; may be repeated",
    ),
    Option(name="opprof-save", metavar="NAME", help="keep this run as the baseline NAME"),
    Option(
        name="opprof-save-processes",
        metavar="N",
        default="2",
        help="processes that must agree on a saved value: this one and N-1 fresh ones",
    ),
    Option(name="opprof-baseline", metavar="NAME|REF", help="fail on a regression against this baseline"),
    Option(
        name="opprof-store",
        metavar="URI",
        default="dir:.opprof",
        help="where baselines are kept: dir:PATH, counts:PATH, git:, or an address such as s3://bucket/folder",
    ),
    Option(
        name="opprof-history",
        metavar="saved|all|off",
        default="saved",
        help="runs that the store's history keeps: the saved ones, all, or none",
    ),
    Option(
        name="opprof-fail-on",
        metavar="LIST",
        default="regressed,missing,inconclusive,error,no-baseline",
        help="verdicts that fail",
    ),
    Option(
        name="opprof-gate",
        metavar="PATTERN=RULE",
        is_list=True,
        help="how metrics are judged: exact, off, advisory or a tolerance such as 2%%; may be repeated",
    ),
    Option(
        name="opprof-rename",
        metavar="OLD->NEW",
        is_list=True,
        help="a test, class, file or folder of the baseline that was renamed; may be repeated",
    ),
    Option(
        name="opprof-capture",
        metavar="LIST",
        default="ranges,ops,cuda-if-used",
        help=f"what to record, from {', '.join(CAPTURE)}",
    ),
    Option(
        name="opprof-call-sites",
        metavar="on|off",
        default="on",
        help="record which line of your code calls each op; off: only when a test is measured again, to save "
        "it or before it fails",
    ),
    Option(
        name="opprof-instructions",
        metavar="on|off",
        default="on",
        help="count the Python instructions of a further call of each measured test, by function; off: save "
        "the time of that call",
    ),
    Option(
        name="opprof-seed",
        metavar="N|off",
        default="0",
        help="seed random, numpy and torch before each call of a measured test except the first; off: seed "
        "nothing",
    ),
    Option(name="opprof-sort", metavar="KEY", default="self_cpu_time_total", help="order of op tables"),
    Option(
        name="opprof-columns",
        metavar="LIST",
        help="columns of op tables (default: torch.profiler's, if they have values)",
    ),
    Option(name="opprof-rows", metavar="N", default="10", help="rows of op tables, -1 for all"),
    Option(name="opprof-traces", metavar="DIR", help="write a Chrome trace of each measured test here"),
    Option(
        name="opprof-trace-budget",
        metavar="SIZE",
        default="64 MiB",
        help="space for traces of saved tests, and the same again for those of failed gates; 0: keep none",
    ),
    Option(
        name="opprof-timed-steps",
        metavar="N",
        default="0",
        help="time N further steps of each measured test without the profiler: the metric wall_time",
    ),
    Option(
        name="opprof-timed-max-time",
        metavar="SECONDS",
        default="1",
        help="how much longer a test may take on a busy machine, to find undisturbed steps",
    ),
    Option(
        name="opprof-json",
        metavar="PATH",
        help="write this run to a JSON file; {rank} in PATH is RANK's value",
    ),
    Option(
        name="opprof-report",
        metavar="FORMAT:PATH",
        is_list=True,
        help="write a report of this session: json (the comparison), html, markdown, summary, gitlab, "
        "junit, annotations, openmetrics or badge; - for PATH prints it; may be repeated",
    ),
)


def add_options(parser: pytest.Parser) -> None:
    """Register our options; their default is None, so that an ini value is seen."""
    group = parser.getgroup("opprof", "op-level profiling and regression gates")
    for option in OPTIONS:
        tail = "" if option.default is None else f" (default: {option.default})"
        group.addoption(
            f"--{option.name}",
            action="append" if option.is_list else "store",
            dest=option.dest,
            metavar=option.metavar,
            default=None,
            help=option.help + tail,
        )
        ini_help = option.help.replace("%%", "%") + tail
        if option.is_list:
            parser.addini(option.dest, ini_help, "linelist", default=[])
        else:
            parser.addini(option.dest, ini_help, "string", default=None)
