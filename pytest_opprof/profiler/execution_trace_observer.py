"""``torch.profiler.ExecutionTraceObserver`` over our own recordings."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable
from os import getpid  # code under test may replace that of `os`
from pathlib import Path
from typing import Self
from weakref import WeakSet

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.ranges import record_function
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.sources import DEFAULT_SOURCES
from pytest_opprof.traces.execution_trace import write_execution_trace


class ExecutionTraceObserver:
    """Record the inputs and outputs of ops, and write an execution trace (Chakra schema).

    Use it alone, between `start` and `stop`, or as ``profile(execution_trace_observer=...)``, which records
    for both and calls `cleanup`. Its file has torch's fields; ``rf_id`` is the ``Record function id`` of the
    same event in the profiler's Chrome trace. `profile` also takes torch's own observer.
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._file: Path | None = None
        self._process: int | None = None  # the one that writes the file, and not one forked from it
        self._running = False
        self._owns_window = False
        self._recordings: list[Recording] = []
        self._collects_resources = False

    def __del__(self) -> None:
        # As torch promises, a forgotten observer still writes its file.
        self.unregister_callback()

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer that writes into a temporary file if ENABLE_PYTORCH_EXECUTION_TRACE is 1, else None.

        With ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS=1 it collects resources too. If there is no place for the
        file, it warns and returns None.
        """
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        try:
            descriptor, path = tempfile.mkstemp(suffix=".et.json")
        except OSError as error:
            warnings.warn(f"no execution trace is recorded: its file cannot be made: {error}", stacklevel=2)
            return None
        os.close(descriptor)
        observer = ExecutionTraceObserver().register_callback(path)
        observer.set_extra_resource_collection(os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS") == "1")
        return observer

    def register_callback(self, output_file_path: str | os.PathLike[str]) -> Self:
        """Set the file, compressed if it ends in ``.gz``; no effect if one is set and not yet written.

        A process that is forked afterwards writes nothing, unless it sets a file itself.
        """
        if not self.is_registered:
            self._path = os.fspath(output_file_path)
            self._file = Path(self._path).absolute()
            self._process = getpid()
            self._running = self._owns_window = False  # those of a parent process
            self._recordings = []
            _written_at_exit().add(self)
        return self

    def unregister_callback(self) -> None:
        """Stop, and write the file; within a profile, write what was recorded so far.

        Raises:
            OSError: It cannot be written.
        """
        if not self.is_registered:
            return
        self.stop()
        if self._running:
            self.take(Collector.instance().peek())
        self._process = None
        recordings, self._recordings = self._recordings, []
        assert self._file is not None, "register_callback() set it"
        write_execution_trace(recordings, self._file)
        self._save_kernels()

    def cleanup(self) -> None:
        """The same as `unregister_callback`; `profile` calls it at the end of its block."""
        self.unregister_callback()

    def start(self) -> None:
        """Start recording; does nothing before `register_callback` or while it records.

        Raises:
            CaptureBusyError: A profile is being recorded; give the observer to that one instead.
        """
        if not self.is_registered or self._running:
            return
        collector = Collector.instance()
        collector.open(sources=DEFAULT_SOURCES)
        if "ops" in collector.problems:
            warnings.warn(f"ops are not recorded: {collector.problems['ops']}", stacklevel=2)
        collector.start(record_outputs=True)
        self._owns_window = True
        self.join_window()

    def stop(self) -> None:
        """Stop the recording that `start` began; `unregister_callback` writes it."""
        if self.is_running() and self._owns_window:
            self._owns_window = False
            self.take(Collector.instance().stop())

    def join_window(self) -> None:
        """Take part in the window that a profiler opened."""
        if self.is_registered:
            self._running = True
            _record_process_groups()

    def take(self, recording: Recording) -> None:
        """Keep the recording of the closed window."""
        if self.is_running():
            self._running = False
            self._recordings.append(recording)

    @property
    def is_registered(self) -> bool:
        """Whether this process set a file and has not yet written it."""
        return self._process == getpid()

    def is_running(self) -> bool:
        """Whether it records now."""
        return self._running and self.is_registered

    def get_output_file_path(self) -> str | None:
        """The file, or None before `register_callback`."""
        return self._path

    # ---- resources ----

    def set_extra_resource_collection(self, val: bool) -> None:  # noqa: FBT001  # torch's signature
        """Choose whether to copy the kernels that torch.compile generated, which a replay needs."""
        self._collects_resources = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:  # noqa: FBT001, FBT002  # torch's signature
        """The folder of these copies, beside the file; None unless they are collected."""
        if not self._collects_resources or self._file is None:
            return None
        return self.get_resources_dir_for_et_path(self._file, create_dir=can_create)

    @staticmethod
    def get_resources_dir_for_et_path(
        trace_path: str | os.PathLike[str],
        create_dir: bool = False,  # noqa: FBT001, FBT002  # torch's signature
    ) -> str | None:
        """``<name>_resources`` beside the file; None if it does not exist or cannot be made."""
        path = Path(trace_path)
        folder = path.with_name(f"{path.stem}_resources")
        if create_dir:
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                warnings.warn(f"the execution trace's resources are not kept: {error}", stacklevel=2)
        return str(folder) if folder.is_dir() else None

    def _save_kernels(self) -> None:
        folder = self.get_resources_dir(can_create=True)
        code_cache = sys.modules.get("torch._inductor.codecache")
        if folder is None or code_cache is None:
            return
        for module in code_cache.PyCodeCache.modules:
            source = getattr(module, "__file__", None)
            if source is not None:
                shutil.copy(source, folder)


@functools.cache
def _written_at_exit() -> WeakSet[ExecutionTraceObserver]:
    """The observers that write at the end of the program, unless they were written or destroyed before.

    When Python destroys the last objects, the window is closed, and no file can be opened.
    """
    observers = WeakSet[ExecutionTraceObserver]()
    Collector.instance()  # first, because its handler closes the window: handlers run in reverse order
    atexit.register(_write_all, observers)
    return observers


def _write_all(observers: Iterable[ExecutionTraceObserver]) -> None:
    for observer in tuple(observers):
        observer.unregister_callback()


def _record_process_groups() -> None:
    """Record the process groups of a torch.distributed job, as the node that replays read."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        groups = distributed.distributed_c10d._world.pg_config_info  # noqa: SLF001  # where torch's own has it from
        with record_function("## process_group:init ##", json.dumps(groups, default=str)):
            pass
