"""Shows opprof find a straggler and a regression in a job of 64 ranks.

It makes two jobs from one rank's real trace (`fleet_job`). In both, rank 13 computes 8 % slower than the
others. In the second, each step concatenates tensors twice more, and cuDNN's kernels take 10 % longer. The
demo exits with 0 if the commands name only that rank and that op.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from fleet_job import Plan, write_job  # type: ignore[import-not-found]  # it is beside this script

RANKS = 64
TRACE = Path(__file__).parent / "traces" / "nccl_rank.json.gz"
STRAGGLER = 13
OP = "aten::cat"


def main() -> int:
    """Make both jobs, show the second one, and compare them."""
    with tempfile.TemporaryDirectory(prefix="opprof-fleet-") as folder:
        slower = {STRAGGLER: 1.08}
        write_job(TRACE, Path(folder, "monday"), Plan(ranks=RANKS, slower=slower, seed=1))
        regressed = Plan(ranks=RANKS, slower=slower, seed=2, kernel="cudnn", kernel_factor=1.1, more={OP: 2})
        write_job(TRACE, Path(folder, "tuesday"), regressed)
        for job in ("monday", "tuesday"):
            if opprof(f"fleet ingest {job} --job {job}", folder):
                return 1
        shown = opprof("fleet show tuesday", folder)
        compared = opprof("fleet diff monday tuesday --rows 4", folder)
        summary = json.loads(answer("fleet show tuesday --json", folder))
        found = json.loads(answer("fleet diff monday tuesday --json", folder))
    named = [one["rank"] for one in summary["stragglers"]]
    failed = [op["name"] for op in found["ops"] if op["reason"]]
    return int((shown, compared, named, failed) != (0, 1, [STRAGGLER], [OP]))


def opprof(arguments: str, folder: str) -> int:
    """Run a command visibly, and return its exit code."""
    print(f"$ opprof {arguments}", flush=True)
    command = [sys.executable, "-m", "pytest_opprof", *shlex.split(arguments)]
    return subprocess.run(command, cwd=folder, check=False).returncode


def answer(arguments: str, folder: str) -> str:
    """The output of a command."""
    command = [sys.executable, "-m", "pytest_opprof", *shlex.split(arguments)]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
