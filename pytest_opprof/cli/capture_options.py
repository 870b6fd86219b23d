"""The options of all commands that record a process."""

from __future__ import annotations

import argparse
from typing import Any, Final

# The profiler's with_stack, by --stack and --cpp-stack.
_STACKS: Final = {(False, False): False, (True, False): "python", (False, True): "cpp", (True, True): "all"}


def add_capture_options(parser: argparse.ArgumentParser, *, stack: bool) -> None:
    """Add the options; ``stack`` is the default of ``--stack``."""
    parser.add_argument("--shapes", action="store_true", help="record the ops' input shapes and dtypes")
    parser.add_argument("--memory", action="store_true", help="record memory")
    default = "on by default" if stack else "off by default"
    parser.add_argument(
        "--stack",
        action=argparse.BooleanOptionalAction,
        default=stack,
        help=f"record Python and C calls; {default}",
    )
    parser.add_argument("--cpp-stack", action="store_true", help="record the C++ stack of each op and range")
    parser.add_argument(
        "--sampling",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="record a share of torch's ops, such as 0.01",
    )


def capture_options(args: argparse.Namespace) -> dict[str, Any]:
    """The chosen options as arguments of `profile`."""
    from pytest_opprof.capture.sampling import parse_sampling  # needs no command else

    return {
        "record_shapes": args.shapes,
        "profile_memory": args.memory,
        "with_stack": _STACKS[args.stack, args.cpp_stack],
        "sampling": parse_sampling(args.sampling, where="--sampling"),
    }
