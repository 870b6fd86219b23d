"""An S3 server on loopback, in its own process, and a client's environment."""

import os
import re
import subprocess
import sys
import threading
import urllib.request
from dataclasses import dataclass

BUCKET = "baselines"


@dataclass(frozen=True, kw_only=True)
class ObjectStore:
    """A running server.

    Attributes:
        process: Moto's process.
        address: Its URL.
    """

    process: subprocess.Popen[str]
    address: str

    @classmethod
    def start(cls) -> "ObjectStore":
        """Start it on a free port, with one bucket."""
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        for line in process.stderr:
            found = re.search(r"Running on (http://127\.0\.0\.1:\d+)", line)
            if found:
                # its request log must be read, or the full pipe would block it
                threading.Thread(target=process.stderr.read, daemon=True).start()
                store = cls(process=process, address=found[1])
                store.request("PUT", f"/{BUCKET}")
                return store
        raise AssertionError("moto's server did not start")

    def request(self, method: str, path: str, data: bytes = b"") -> bytes:
        """Ask the server directly, bypassing the tested code."""
        request = urllib.request.Request(self.address + path, method=method, data=data)  # noqa: S310
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request) as answer:
            told: bytes = answer.read()
        return told

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a client."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()
