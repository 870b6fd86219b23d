"""``python -m benchmarks`` prints each comparison, and exits with 1 if a bound is missed.

A run of all benches is stored in ``benchmarks/results``; the docs are generated from the newest one.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import (
    capture,
    counted_calls,
    cuda,
    fleet,
    growth,
    history,
    html_report,
    post_processing,
    python_calls,
    ranges,
    results,
    run_scripts,
    trace_export,
    trace_reading,
    unused_plugin,
)
from benchmarks.table import Row, as_text

_BENCHES = {
    "post": post_processing.rows,
    "capture": capture.rows,
    "ranges": ranges.rows,
    "calls": python_calls.rows,
    "counted": counted_calls.rows,
    "run": run_scripts.rows,
    "trace": trace_export.rows,
    "reading": trace_reading.rows,
    "cuda": cuda.rows,
    "fleet": fleet.rows,
    "growth": growth.rows,
    "history": history.rows,
    "html": html_report.rows,
    "unused": unused_plugin.rows,
}


def main() -> int:
    """Run the chosen benches."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=_BENCHES, action="append", help="only this bench; may be repeated")
    parser.add_argument(
        "--quick", action="store_true", help="smaller benches, which noise may push over a bound"
    )
    args = parser.parse_args()
    found: dict[str, list[Row]] = {}
    for name in args.only or _BENCHES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found[name] = _BENCHES[name](quick=args.quick)
    rows = [row for bench in found.values() for row in bench]
    print(as_text(rows, markdown=False))
    if not args.only and not args.quick:
        run = results.document(found)
        before = results.newest(before=run["date"])
        print(f"stored in {results.keep(run)}: `make reference` writes it into the docs")
        if before is not None:
            print(
                "\n".join((f"moved by more than 20 % since {before['date']}:", *results.moved(before, run)))
            )
    return int(not all(row.holds for row in rows))


if __name__ == "__main__":
    sys.exit(main())
