"""Requests to a forge's API: they wait out rate limits and outages, and limit the size of answers."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pytest_opprof.addresses import shown
from pytest_opprof.errors import DocumentError, ForgeError, ForgePermissionError, UsageError
from pytest_opprof.extras import needed
from pytest_opprof.forge.fields import Fields
from pytest_opprof.forge.retry import RetryPolicy, is_busy
from pytest_opprof.release import DISTRIBUTION, version
from pytest_opprof.results.files import parse

if TYPE_CHECKING:
    from ssl import SSLContext

_TIMEOUT_S = 30.0
# A page of 100 comments is smaller, even if each has maximum length and is fully escaped.
_LARGEST_ANSWER = 64 * 1024 * 1024
_REFUSED = frozenset({401, 403})
_FOUND = 302
_LEAST_ERROR = 300
_PAGE = 100
_MOST_PAGES = 100
_LONGEST_QUOTE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An API's answer."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes  # not compressed
    asked: str  # the request, as errors name it

    @property
    def fields(self) -> Fields:
        """Its JSON; ForgeError if it is something else."""
        try:
            return Fields(parse(self.body, where=self.asked), where=self.asked)
        except DocumentError as error:
            raise ForgeError(f"{self.asked}: the answer cannot be read: {error}") from error

    @property
    def message(self) -> str:
        """The error that it reports, shortened: ``403: Resource not accessible by integration``."""
        try:
            text = self.fields.text("message")
        except ForgeError:
            return str(self.status)
        return f"{self.status}: {text[:_LONGEST_QUOTE]}"


class Api:
    """The API of a forge at an address such as ``https://api.github.com``; errors call it `name`.

    The headers, including the token, are sent with each request, and never to another host.
    """

    def __init__(
        self, url: str, *, name: str, headers: Mapping[str, str], retry: RetryPolicy | None = None
    ) -> None:
        self._httpx = needed("httpx", extra="github", by="opprof comment")
        if not self._is_web_address(url):
            raise UsageError(
                f"{shown(url)!r} is not an address of {name}'s API: write it like https://api.github.com"
            )
        self.name = name
        self._url = url.rstrip("/")
        self._retry = retry or RetryPolicy()
        agent = f"{DISTRIBUTION}/{version()}"
        self._headers = {"User-Agent": agent, "Accept": "application/json", **headers}
        self._http = self._httpx.Client(verify=_tls(), timeout=_TIMEOUT_S, follow_redirects=False)

    def _is_web_address(self, url: str) -> bool:
        try:
            parts = self._httpx.URL(url)
        except self._httpx.InvalidURL:
            return False
        return parts.scheme in {"http", "https"} and bool(parts.host)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        needs: str,
        params: Mapping[str, str | int] | None = None,
        content: Mapping[str, str] | None = None,
        also: Collection[int] = (),
    ) -> Answer:
        """Make a request, and retry it while the API is busy.

        A request may take effect although its answer is lost, so a retry may create something twice: callers
        must look for duplicates. `needs` says, if permission is denied, who needs which. The error statuses
        in `also` are returned; others are raised as ForgeError.
        """
        asked = f"{self.name}: {method} {path}"
        answer = self._patiently(
            method, self._url + path, asked=asked, params=params, json=content, headers=self._headers
        )
        if answer.status < _LEAST_ERROR or answer.status in also:
            return answer
        if answer.status in _REFUSED:
            raise ForgePermissionError(f"{asked}: refused ({answer.message}): {needs}")
        raise ForgeError(f"{asked}: {answer.message}")

    def pages(
        self, path: str, *, needs: str, params: Mapping[str, str | int] | None = None
    ) -> Iterator[Fields]:
        """All pages of a list, 100 entries each; ForgeError for more than 10,000 entries."""
        for page in range(1, _MOST_PAGES + 1):
            query = {**(params or {}), "per_page": _PAGE, "page": page}
            answer = self.ask("GET", path, needs=needs, params=query)
            yield answer.fields
            if 'rel="next"' not in answer.headers.get("link", ""):
                return
        raise ForgeError(f"{self.name}: GET {path}: there are more than {_PAGE * _MOST_PAGES} entries")

    def download(self, path: str, *, needs: str, most: int) -> bytes:
        """Follow the API's redirect and read a file there, without sending the token."""
        place = self.ask("GET", path, needs=needs, also={_FOUND}).headers.get("location", "")
        # If the API is asked over TLS, the file must come over TLS too.
        if urlsplit(place).scheme not in {"https", urlsplit(self._url).scheme}:
            raise ForgeError(f"{self.name}: GET {path}: it leads to an address that is not https")
        asked = f"{self.name}: what {path} leads to"
        # A compressed answer could be a bomb itself, around the zip.
        headers = {"Accept-Encoding": "identity"}
        answer = self._patiently("GET", place, asked=asked, headers=headers, most=most)
        if answer.status >= _LEAST_ERROR:
            raise ForgeError(f"{asked}: {answer.message}")
        return answer.body

    def _patiently(
        self, method: str, url: str, *, asked: str, most: int = _LARGEST_ANSWER, **options: Any
    ) -> Answer:
        waited, tried = 0.0, 0
        while True:
            tried += 1
            answer: Answer | None = None
            try:
                answer = self._once(method, url, asked=asked, most=most, **options)
            except self._httpx.RequestError as error:
                told = f"no answer ({type(error).__name__}: {error})"
                if "CERTIFICATE_VERIFY_FAILED" in told:
                    advice = "If an authority of your own signed it, set SSL_CERT_FILE to its certificate"
                    raise ForgeError(f"{asked}: {told}. {advice}") from error
            else:
                if not is_busy(answer.status, answer.headers, answer.body):
                    return answer
                told = answer.message
            pause = self._retry.pause(tried, answer.headers if answer else {})
            if tried >= self._retry.tries:
                raise ForgeError(f"{asked}: {told}, {tried} times. Try again once {self.name} is available")
            if waited + pause > self._retry.longest_s:
                raise ForgeError(f"{asked}: {told}. Try again after {self._retry.until(pause)}")
            self._retry.sleep(pause)
            waited += pause

    def _once(self, method: str, url: str, *, asked: str, most: int, **options: Any) -> Answer:
        with self._http.stream(method, url, **options) as response:
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) > most:
                    raise DocumentError(f"{asked}: this is larger than {most} bytes. It was not used")
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(status=response.status_code, headers=headers, body=bytes(body), asked=asked)


@functools.cache
def _tls() -> SSLContext:
    """Trusted certificates, read once per process because that takes longer than a request."""
    context: SSLContext = needed("httpx", extra="github", by="opprof comment").create_ssl_context()
    return context
