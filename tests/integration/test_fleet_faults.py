"""Faults while many machines read a job: each healthy rank counts, each other rank is named."""

import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.forges.object_store import BUCKET, ObjectStore
from support.kineto.dask_network import DaskNetwork, can_make_namespaces, logs, network_to_oneself
from support.kineto.rank_traces import write_job

from pytest_opprof.errors import StoreError
from pytest_opprof.fleet import ingest as ingesting
from pytest_opprof.fleet.ingest import ingest
from pytest_opprof.fleet.manifest import RankFile, SourceFile, Status
from pytest_opprof.fleet.summary import summarize
from pytest_opprof.fleet.tables import windows_of

RANKS = 24


def content(tables: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(tables)): path.read_bytes()
        for path in sorted(tables.rglob("*.parquet"))
        if path.parent.name != "ranks"
    }


def manifest(tables: Path) -> list[RankFile]:
    return windows_of(str(tables), "a")[0].manifest()


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces that take some time to read."""
    return write_job(tmp_path_factory.mktemp("job"), ranks=RANKS, muls=20_000)


@pytest.fixture(scope="module")
def undisturbed(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    tables = tmp_path_factory.mktemp("undisturbed")
    with ThreadPoolExecutor(1) as executor:
        ingest(str(job), str(tables), job="a", executor=executor)
    return content(tables)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[DaskNetwork]:
    with network_to_oneself():
        if not can_make_namespaces():
            pytest.skip("no network namespaces here: it takes root and iproute2")
        folder = tmp_path / "network"
        folder.mkdir()
        made = DaskNetwork(folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()


@pytest.mark.slow
def test_killed_worker_loses_nothing(
    job: Path, undisturbed: dict[str, bytes], network: DaskNetwork, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"
    code, told = network.ingest(job, tables, meanwhile=lambda: network.kill_worker("opprof-w1"))
    assert (code, content(tables)) == (0, undisturbed), told + logs(network.folder)


@pytest.mark.slow
def test_network_outage_loses_nothing(
    job: Path, undisturbed: dict[str, bytes], network: DaskNetwork, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"

    def cut_and_heal() -> None:
        network.cut("opprof-w2")
        time.sleep(25)  # longer than each side waits for the other
        network.heal("opprof-w2")

    code, told = network.ingest(job, tables, meanwhile=cut_and_heal)
    assert (code, content(tables)) == (0, undisturbed), told + logs(network.folder)


@pytest.mark.slow
def test_lost_scheduler_is_reported(job: Path, network: DaskNetwork, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    code, told = network.ingest(job, tables, meanwhile=network.kill_scheduler, parts=6)
    files = manifest(tables)
    assert code == 1, told
    assert [one.rank for one in files] == list(range(RANKS))
    failed = [one for one in files if one.status is not Status.OK]
    assert 0 < len(failed) < RANKS, told
    for one in failed:
        assert f"failed: rank {one.rank} (" in told


@pytest.mark.slow
def test_a_rank_that_kills_its_reader_is_named(network: DaskNetwork, tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", ranks=RANKS)
    (job / "rank7.json").rename(job / "rank7-poison.json")
    code, told = network.ingest(job, tmp_path / "tables", meanwhile=lambda: None)
    files = manifest(tmp_path / "tables")
    assert code == 1, told + logs(network.folder)
    assert [one.rank for one in files if one.status is not Status.OK] == [7], told + logs(network.folder)
    assert "reading it killed its worker" in told


@pytest.mark.slow
def test_full_disk_is_reported_and_the_earlier_job_stays(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here: it takes root")
    try:
        small = write_job(tmp_path / "small", ranks=2)
        large = write_job(tmp_path / "large", ranks=RANKS)
        with ThreadPoolExecutor(1) as executor:
            ingest(str(small), str(disk), job="a", executor=executor)
            before = manifest(disk)
            (disk / "filler").write_bytes(b"x" * (400 << 10))
            with pytest.raises(StoreError, match="cannot be written: No space left on device"):
                ingest(str(large), str(disk), job="b", executor=executor)
            assert manifest(disk) == before
            (disk / "filler").unlink()
            files = ingest(str(large), str(disk), job="b", executor=executor)
        assert [one.status for one in files] == [Status.OK] * RANKS
    finally:
        subprocess.run(["umount", str(disk)], check=True)


class _Busy(BaseHTTPRequestHandler):
    """An object store that is too busy to answer."""

    def do_GET(self) -> None:
        self.send_error(503, "Slow Down")

    do_HEAD = do_PUT = do_GET  # noqa: N815 - the library's names

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow  # the client tries again for a while
def test_store_answering_503_is_reported(
    object_store: ObjectStore, object_store_variables: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_job(tmp_path / "job", ranks=8)
    files = [SourceFile(path=str(path), named_rank=at) for at, path in enumerate(sorted(folder.iterdir()))]
    files[5] = SourceFile(path=f"s3://{BUCKET}/rank5.json", named_rank=5)
    monkeypatch.setattr(ingesting, "list_files", lambda _source: files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
    try:
        with ThreadPoolExecutor(1) as executor:
            read = ingest(str(folder), str(tmp_path / "tables"), job="a", executor=executor)
    finally:
        server.shutdown()
        server.server_close()
    (failed,) = [one for one in read if one.status is not Status.OK]
    assert failed.rank == 5
    assert failed.error


@pytest.mark.slow
@pytest.mark.usefixtures("object_store_variables")
def test_traces_and_tables_may_be_in_an_object_store(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job", ranks=8)
    store = pytest.importorskip("fsspec").filesystem("s3")
    for path in sorted(folder.iterdir()):
        store.pipe_file(f"{BUCKET}/fleet-traces/{path.name}", path.read_bytes())
    source, tables = f"s3://{BUCKET}/fleet-traces", f"s3://{BUCKET}/fleet-tables"
    with ThreadPoolExecutor(1) as executor:
        files = ingest(source, tables, job="a", executor=executor)
        local = ingest(str(folder), str(tmp_path / "tables"), job="a", executor=executor)
    assert [one.error for one in files] == [""] * 8
    assert all(one.etag for one in files)
    (window,) = windows_of(tables, "a")
    assert [one.ops for one in window.manifest()] == [one.ops for one in local]
    # DuckDB can read them there, too.
    assert summarize(window) == summarize(windows_of(str(tmp_path / "tables"), "a")[0])
