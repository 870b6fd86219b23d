"""What a user reads if a forge's API does not answer."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_opprof.errors import ForgeError
from pytest_opprof.forge.client import Api
from pytest_opprof.forge.retry import RetryPolicy

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")


def trouble(url: str) -> tuple[str, int]:
    """The error of a request, and how often it was tried again."""
    waited: list[float] = []
    with (
        Api(url, name="GitLab", headers={}, retry=RetryPolicy(sleep=waited.append)) as api,
        pytest.raises(ForgeError) as caught,
    ):
        api.ask("GET", "/user", needs="")
    return str(caught.value), len(waited)


@pytest.fixture
def unknown_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server whose certificate nobody else has signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    of_a_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key)
    subprocess.run(
        ["openssl", "req", "-x509", *of_a_key, "-out", certificate, "-subj", "/CN=127.0.0.1"],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):  # the client hangs up
                server.accept()

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_unknown_authority_is_named_at_once(unknown_authority: str) -> None:
    told, tried_again = trouble(unknown_authority)
    assert told.startswith("GitLab: GET /user: no answer (ConnectError: [SSL: CERTIFICATE_VERIFY_FAILED]")
    assert told.endswith("If an authority of your own signed it, set SSL_CERT_FILE to its certificate")
    assert tried_again == 0


def test_refused_connection_is_tried_again_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        told, tried_again = trouble(f"http://127.0.0.1:{nobody_listens.getsockname()[1]}")
    assert (
        "no answer (ConnectError: [Errno 111] Connection refused), 6 times. Try again once GitLab is" in told
    )
    assert tried_again == 5
