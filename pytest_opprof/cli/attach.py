"""``opprof attach``: record a running process from outside."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any, Final

from pytest_opprof.cli.recorded import add_capture_options, capture_options
from pytest_opprof.cli.terminated import terminated_as_interrupted
from pytest_opprof.errors import CollectorError
from pytest_opprof.units import check_between

HELP = "record a process that listens, and write its trace"
EXAMPLE = "opprof attach 4711 --seconds 10"

_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.02
_LEAST_SECONDS: Final = 0.01
_MOST_SECONDS: Final = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("pid", type=int, help="the process, started with OPPROF_ATTACH=1")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="record for SECONDS (default: 5); Ctrl-C ends it"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default opprof-PID.json.gz")
    add_capture_options(parser, stack=False)


def run(args: argparse.Namespace) -> int:
    """Start, wait, stop."""
    from pytest_opprof.profiler.on_demand import withdraw  # needs no command else
    from pytest_opprof.results.files import check_writable

    check_between("--seconds", args.seconds, _LEAST_SECONDS, _MOST_SECONDS)
    path = (args.output or Path(f"opprof-{args.pid}.json.gz")).absolute()
    check_writable(path)
    ended = ""
    with terminated_as_interrupted():
        start = _request(args.pid, {"action": "start", "options": capture_options(args)})
        try:
            _answer(args.pid, start)
            print(f"recording process {args.pid} for {args.seconds:g} s", flush=True)
            time.sleep(args.seconds)
        except (KeyboardInterrupt, CollectorError):
            if withdraw(args.pid):
                raise  # it has not started, and will not
            _answer(args.pid, start)
            ended = "ended early\n"  # not printed yet: the terminal may be closed
        stop = _request(args.pid, {"action": "stop", "path": str(path)})
        answer = _answer(args.pid, stop)
    print(f"{ended}{answer['events']} events: {path}")
    return 0


def _request(pid: int, request: dict[str, Any]) -> str:
    from pytest_opprof.profiler.on_demand import send  # needs no command else

    number = uuid.uuid4().hex
    send(pid, request | {"id": number})
    return number


def _answer(pid: int, number: str) -> dict[str, Any]:
    """Wait for the answer to a request, which stays until the next one is sent."""
    from pytest_opprof.profiler.on_demand import place_of  # needs no command else

    place = place_of(pid, "answer")
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        answer: dict[str, Any] = {}
        with contextlib.suppress(FileNotFoundError):
            answer = json.loads(place.read_text(encoding="utf-8"))
        if answer.get("id") == number:
            if answer["error"] is not None:
                raise CollectorError(f"process {pid}: {answer['error']}")
            return answer
        try:
            os.kill(pid, 0)
        except ProcessLookupError as error:
            raise CollectorError(f"process {pid} ended") from error
        time.sleep(_POLL_S)
    raise CollectorError(
        f"process {pid} did not answer in {_PATIENCE_S:g} s: its main thread may be running C code"
    )
