"""Run tasks on a Dask cluster: a local one that ends with the command, or one that already runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.errors import UsageError
from pytest_opprof.extras import needed

if TYPE_CHECKING:
    from concurrent.futures import Executor

_ADDRESS: Final = "dask:"
_WAIT_S: Final = 60
# Dask makes workers return memory to the system all the time, which costs a fifth of reading a trace.
_MALLOC: Final = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A running engine."""

    executor: Executor
    title: str
    is_alive: Callable[[], bool]


@contextlib.contextmanager
def engine(spec: str = "local", *, workers: int | None = None) -> Iterator[Engine]:
    """Start or join an engine; a started one ends with the context.

    It is ``local``, with a process per core by default, or a scheduler's, such as ``dask:tcp://node7:8786``.
    """
    if spec != "local" and not spec.startswith(_ADDRESS):
        raise UsageError(f"--engine {spec}: give local, or a Dask scheduler such as dask:tcp://node7:8786")
    distributed = needed("distributed")
    with contextlib.ExitStack() as stack:
        if spec == "local":
            stack.enter_context(
                needed("dask").config.set(
                    {
                        "distributed.nanny.pre-spawn-environ": _MALLOC,
                        # A file that kills its worker is read alone next: it need not kill three more.
                        "distributed.scheduler.allowed-failures": 1,
                        # There is no dashboard to show profiles.
                        "distributed.worker.profile.enabled": False,
                    }
                )
            )
            count = workers or len(os.sched_getaffinity(0))
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs="CRITICAL",
            )
            client = stack.enter_context(distributed.Client(stack.enter_context(cluster)))
            title = f"{count} local processes"
        else:
            client = stack.enter_context(_joined(distributed, spec.removeprefix(_ADDRESS)))
            title = f"{len(client.scheduler_info()['workers'])} workers of {spec}"
        yield Engine(
            executor=client.get_executor(pure=False), title=title, is_alive=lambda: client.status == "running"
        )


def _joined(distributed: Any, address: str) -> Any:
    client = distributed.Client
    try:
        found = client(address, timeout=_WAIT_S)
        found.wait_for_workers(1, timeout=_WAIT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(f"no Dask scheduler with a worker answers at {address}: {error}") from error
    return found
