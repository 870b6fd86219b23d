"""The handler that writes traces for TensorBoard and HTA."""

import os
import re
import socket
from pathlib import Path

import pytest

from pytest_opprof.profiler.handlers import tensorboard_trace_handler


class Exporter:
    """Writes the given name into the file of that name; like torch's, it takes only a string."""

    def export_chrome_trace(self, path: str) -> None:
        assert not path.endswith("/")
        Path(path).write_text(path, encoding="utf-8")


def test_file_carries_worker_and_time(tmp_path: Path) -> None:
    tensorboard_trace_handler(tmp_path / "a" / "b", "rank0")(Exporter())
    (written,) = (tmp_path / "a" / "b").iterdir()
    assert re.fullmatch(r"rank0\.[0-9]{19}\.pt\.trace\.json", written.name)


def test_worker_is_host_and_process_unless_named(tmp_path: Path) -> None:
    tensorboard_trace_handler(str(tmp_path))(Exporter())
    (written,) = tmp_path.iterdir()
    assert written.name.startswith(f"{socket.gethostname()}_{os.getpid()}.")


def test_gzip_is_asked_for_by_name(tmp_path: Path) -> None:
    tensorboard_trace_handler(tmp_path, "w", use_gzip=True)(Exporter())
    (written,) = tmp_path.iterdir()
    assert written.name.endswith(".pt.trace.json.gz")


def test_each_cycle_has_a_file_of_its_own(tmp_path: Path) -> None:
    handler = tensorboard_trace_handler(tmp_path, "w")
    for _ in range(3):
        handler(Exporter())
    assert len(list(tmp_path.iterdir())) == 3


def test_uncreatable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"Can't create directory: .*file/traces"):
        tensorboard_trace_handler(tmp_path / "file" / "traces")(Exporter())
