"""A Dask cluster over TCP whose workers are in their own network namespaces, so that the network can fail."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

BRIDGE = "opprof-br"
ADDRESS = "10.203.77.{}"
PORT = 18786
# A worker's preload: reading a file of this name kills the process, as a fault in a library would.
POISON = """
import os, signal
from pytest_opprof.fleet import ingest

def deadly(file, read=ingest.read_file):
    if "poison" in file.path:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(file)

if ingest.read_file.__name__ != "deadly":  # it is loaded twice
    ingest.read_file = deadly
"""


def ip(*arguments: str) -> None:
    """Run `ip`, which must succeed."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@contextlib.contextmanager
def network_to_oneself() -> Iterator[None]:
    """One network at a time: its names and addresses are machine-wide, and tests run in parallel."""
    with (Path(tempfile.gettempdir()) / "opprof-network.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def can_make_namespaces() -> bool:
    """Whether this machine allows it."""
    try:
        ip("netns", "add", "opprof-try")
        ip("netns", "del", "opprof-try")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@dataclass
class DaskNetwork:
    """A scheduler, and workers in namespaces.

    Attributes:
        folder: For logs and files of workers.
        workers: Names of the namespaces.
    """

    folder: Path
    workers: tuple[str, ...] = ("opprof-w1", "opprof-w2")
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def engine(self) -> str:
        """The value for `--engine`."""
        return f"dask:tcp://{ADDRESS.format(1)}:{PORT}"

    def start(self) -> None:
        """Create the network, and start its processes."""
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{ADDRESS.format(1)}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        preload = self.folder / "poison.py"
        preload.write_text(POISON)
        self._run(
            "scheduler", "scheduler", "--host", ADDRESS.format(1), "--port", str(PORT), "--no-dashboard"
        )
        for at, name in enumerate(self.workers):
            ip("netns", "add", name)
            ip("link", "add", f"{name}-out", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{name}-out", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"{ADDRESS.format(10 + at)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            self._run(
                name,
                *("worker", f"tcp://{ADDRESS.format(1)}:{PORT}", "--nthreads", "1", "--no-dashboard"),
                *("--name", name, "--preload", str(preload), "--local-directory", str(self.folder / name)),
                inside=name,
            )

    def _run(self, name: str, *arguments: str, inside: str = "") -> None:
        prefix = ["ip", "netns", "exec", inside] if inside else []
        settings = {
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "12s",
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "12s",
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*prefix, str(Path(sys.executable).with_name("dask")), *arguments],
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def cut(self, worker: str) -> None:
        """Block all traffic to a worker."""
        ip("link", "set", f"{worker}-out", "down")

    def heal(self, worker: str) -> None:
        """Unblock a worker."""
        ip("link", "set", f"{worker}-out", "up")

    def kill_worker(self, worker: str) -> None:
        """Kill the computing process, which its nanny then restarts."""
        found = subprocess.run(["ip", "netns", "pids", worker], check=True, capture_output=True, text=True)
        for pid in sorted(map(int, found.stdout.split()), reverse=True):
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                return
        raise AssertionError(f"{worker} has no process that computes")

    def kill_scheduler(self) -> None:
        """Kill the scheduler."""
        self.processes["scheduler"].kill()

    def ingest(
        self, source: Path, tables: Path, *, meanwhile: Callable[[], None], parts: int = 1
    ) -> tuple[int, str]:
        """Ingest with these workers; call `meanwhile` once this many parts exist."""
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest_opprof", "fleet", "ingest", str(source)),
                *("-o", str(tables), "--job", "a", "--engine", self.engine),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        ends = time.monotonic() + 60
        while (
            len(list(tables.rglob("steps/*.parquet"))) < parts
            and process.poll() is None
            and time.monotonic() < ends
        ):
            time.sleep(0.05)
        meanwhile()
        told, _ = process.communicate(timeout=240)
        return process.returncode, told

    def stop(self) -> None:
        """Stop all of it."""
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        for name in self.workers:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", BRIDGE], check=False, capture_output=True)


def logs(folder: Path) -> str:
    """Output of the cluster's processes, for a failure's message."""
    return json.dumps({path.name: path.read_text()[-2000:] for path in folder.glob("*.log")}, indent=1)
