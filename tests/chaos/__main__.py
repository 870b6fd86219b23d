"""``python -m chaos``, run by `make chaos`: real sessions with random faults, drawn from a printed seed."""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from chaos.faults import FAULTS, MOUNTED, can_mount
from chaos.sessions import draw, template, tried


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--sessions", type=int, default=500, metavar="N")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="by chance unless given")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="skip those before it")
    parser.add_argument("--fault", metavar="NAME", help="this fault alone")
    args = parser.parse_args(arguments)
    seed = secrets.randbits(32) if args.seed is None else args.seed
    faults = FAULTS + (MOUNTED if can_mount() else ())
    if not can_mount():
        print(f"left out, as no file system can be mounted here: {', '.join(one.name for one in MOUNTED)}")
    if args.fault is not None:
        faults = tuple(fault for fault in faults if fault.name == args.fault)
        if not faults:
            parser.error(f"no fault {args.fault!r}; there are {', '.join(fault.name for fault in FAULTS)}")
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)  # noqa: S311 - a drawing that can be repeated
    wrong, done = 0, Counter[str]()
    with tempfile.TemporaryDirectory(prefix="opprof-chaos-") as name:
        with contextlib.redirect_stdout(io.StringIO()):
            made = template(Path(name, "made"))
        for number in range(args.sessions):
            drawn = draw(chance, faults)
            if number < args.first:
                continue
            folder = Path(name, f"session-{number}")
            with contextlib.redirect_stdout(io.StringIO()):
                problems = tried(made, folder, drawn)
            shutil.rmtree(folder, ignore_errors=True)
            done[drawn.mode.value] += 1
            for problem in problems:
                wrong += 1
                print(f"{number}: {drawn}: {problem}", flush=True)
    modes = ", ".join(f"{count} {mode}" for mode, count in sorted(done.items()))
    print(f"{sum(done.values())} sessions ({modes}) with {len(faults)} kinds of faults: {wrong} problems")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
