"""One trace for one page: who may fetch it, and when serving ends."""

import http.client
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.traces.serving import PERFETTO, PORT, Viewer, serve_trace

ORIGIN = "https://perfetto.example"


class Serving:
    """A server in its own thread that runs until the file was fetched."""

    def __init__(self, path: Path) -> None:
        self._ready = threading.Event()
        self.link = ""
        viewer = Viewer(url=ORIGIN, port=0)
        self.thread = threading.Thread(target=serve_trace, args=(path, viewer), kwargs={"ready": self._open})
        self.thread.start()
        assert self._ready.wait(30)

    def _open(self, link: str) -> None:
        self.link = link
        self._ready.set()

    @property
    def url(self) -> str:
        (url,) = parse_qs(urlsplit(self.link.replace("#!/", "")).query)["url"]
        return url

    def ask(
        self, path: str | None = None, *, method: str = "GET", **headers: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=30)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path or address.path, headers=names)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response, body


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    path = tmp_path / "a trace.json.gz"
    path.write_bytes(b"\x1f\x8b" + b"x" * 100_000)
    found = Serving(path)
    yield found
    if found.thread.is_alive():
        found.ask()
    found.thread.join(30)
    assert not found.thread.is_alive()


def test_the_page_fetches_the_file_and_the_serving_ends(serving: Serving) -> None:
    assert serving.link.startswith(f"{ORIGIN}/#!/?url=http://127.0.0.1:")
    response, body = serving.ask(Origin=ORIGIN)
    assert (response.status, len(body)) == (200, 100_002)
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert response.headers["Cache-Control"] == "no-store"
    serving.thread.join(30)
    assert not serving.thread.is_alive()


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_another_site_gets_nothing(serving: Serving, name: str) -> None:
    foreign = {"Host": "evil.example:9001", "Origin": "https://evil.example"}[name]
    response, body = serving.ask(**{name: foreign})
    assert response.status == {"Host": 421, "Origin": 403}[name]
    assert b"xxx" not in body
    assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert serving.thread.is_alive()


@pytest.mark.parametrize(
    "path", ["/", "/a%20trace.json.gz", "//etc/passwd", "/../../etc/passwd", "/%2e%2e/x"]
)
def test_another_path_is_not_there(serving: Serving, path: str) -> None:
    assert serving.ask(path)[0].status == 404


def test_path_is_random(serving: Serving, tmp_path: Path) -> None:
    other = Serving(tmp_path / "a trace.json.gz")
    first, second = (urlsplit(one.url).path.split("/")[1] for one in (serving, other))
    assert first != second
    assert len(first) >= 20
    other.ask()
    other.thread.join(30)


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "OPTIONS", "DELETE"])
def test_only_fetching_is_allowed(serving: Serving, method: str) -> None:
    assert serving.ask(method=method)[0].status == 501
    assert serving.thread.is_alive()


def test_silent_connection_blocks_nobody(serving: Serving) -> None:
    port = urlsplit(serving.url).port
    assert port is not None
    with socket.create_connection(("127.0.0.1", port)):
        assert serving.ask()[0].status == 200
        serving.thread.join(30)
        assert not serving.thread.is_alive()


def test_server_listens_only_on_loopback(serving: Serving) -> None:
    port = urlsplit(serving.url).port
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert [row[1] for row in listening if row[1].endswith(f":{port:04X}") and row[3] == "0A"] == [
        f"0100007F:{port:04X}"
    ]


def test_perfetto_page_uses_its_fixed_port() -> None:
    viewer = Viewer()
    assert (viewer.origin, viewer.port) == (PERFETTO, PORT) == ("https://ui.perfetto.dev", 9001)
    assert viewer.link("http://127.0.0.1:9001/x/t.json") == (
        "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/x/t.json"
    )


def test_taken_port_is_reported(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(b"[]")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StoreError, match=rf"port {port} of 127.0.0.1 is taken: end what listens there"):
            serve_trace(tmp_path / "trace.json", Viewer(port=port), ready=pytest.fail)


def test_unreadable_trace_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing.json cannot be served: No such file"):
        serve_trace(tmp_path / "missing.json", Viewer(port=0), ready=pytest.fail)
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(StoreError, match=r"pipe.json cannot be served: this is not a regular file"):
        serve_trace(tmp_path / "pipe.json", Viewer(port=0), ready=pytest.fail)


@pytest.mark.parametrize("url", ["perfetto", "file:///etc/passwd", "javascript:alert(1)"])
def test_invalid_page_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="no page: write it like https"):
        serve_trace(tmp_path / "trace.json", Viewer(url=url), ready=pytest.fail)
