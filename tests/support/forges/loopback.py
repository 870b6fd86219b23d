"""A server on loopback with answers from a test. It logs requests, and can make answers fail."""

import functools
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request.

    Attributes:
        method: The HTTP method.
        path: The path without the query.
        query: The last value of each name.
        headers: The headers, with names in lower case.
        body: The request's body.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer: `data` is sent unchanged, `value` as JSON; status 0 cuts the connection."""

    status: int = 200
    value: Any = None
    data: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


NO_ANSWER = Reply(status=0)
Answers = Callable[[Asked], Reply]


class Loopback:
    """A server that answers until it is closed.

    Attributes:
        url: Its address.
        asked: The requests so far.
        failures: By method, answers to send instead of the real ones, each once and in this order.
    """

    def __init__(self, answers: Answers) -> None:
        self.asked: list[Asked] = []
        self.failures: dict[str, deque[Reply]] = {}
        self._answers = answers
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        serve = functools.partial(self._server.serve_forever, poll_interval=0.01)
        self._thread = threading.Thread(target=serve, daemon=True)  # a fuzzer ends without closing it
        self._thread.start()

    def fail(self, method: str, *replies: Reply) -> None:
        """Let the next requests with this method fail."""
        self.failures.setdefault(method, deque()).extend(replies)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, asked: Asked) -> Reply:
        """The answer to a request."""
        with self._lock:
            self.asked.append(asked)
            failures = self.failures.get(asked.method)
            if failures:
                return failures.popleft()
        return self._answers(asked)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet; otherwise delayed acknowledgements slow each answer

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                parts = urlsplit(self.path)
                asked = Asked(
                    method=self.command,
                    path=parts.path,
                    query={name: values[-1] for name, values in parse_qs(parts.query).items()},
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=self.rfile.read(length),
                )
                reply = outer.reply(asked)
                if reply.status == 0:
                    self.close_connection = True
                    return
                data = reply.data
                if data is None:
                    data = b"" if reply.value is None else json.dumps(reply.value).encode()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815 - names of the library

            def log_message(self, *_: Any) -> None:
                """Nothing is logged."""

        return Handler
