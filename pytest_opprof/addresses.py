"""Addresses as messages may show them: without secrets."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, unquote_plus

_HIDDEN: Final = "***"
_END: Final = r"\s'\"<>"
# https://user:password@host and https://token@host; in other schemes a user alone is not a secret.
_LOGIN: Final = re.compile(
    rf"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]*)://(?P<user>[^/?#:@{_END}]*)(?P<password>:[^/{_END}]*)?@"
)
# Signatures and tokens of presigned addresses, whatever a service calls them.
_QUERY: Final = re.compile(rf"(?P<address>\b[A-Za-z][A-Za-z0-9+.-]*://[^?#{_END}]*)[?#](?P<query>[^{_END}]+)")
_WITH_TOKENS: Final = ("http", "https")


def shown(text: str) -> str:
    """A text without the passwords, tokens and queries of the addresses in it."""
    return _QUERY.sub(rf"\g<address>?{_HIDDEN}", _LOGIN.sub(_without_login, text))


def said_of(address: str, text: str) -> str:
    """A program's message about an address, `shown`, and without the address's secrets elsewhere in it."""
    for secret in sorted(_secrets(address), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return shown(text)


def _without_login(found: re.Match[str]) -> str:
    scheme, user = found["scheme"], found["user"]
    if found["password"]:
        user += f":{_HIDDEN}"
    elif scheme.lower().endswith(_WITH_TOKENS):
        user = _HIDDEN
    return f"{scheme}://{user}@"


def _secrets(address: str) -> set[str]:
    secrets = set()
    for found in _LOGIN.finditer(address):
        if found["password"]:
            secrets.add(found["password"].removeprefix(":"))
        elif found["scheme"].lower().endswith(_WITH_TOKENS):
            secrets.add(found["user"])
    for found in _QUERY.finditer(address):
        secrets |= {part.partition("=")[2] for part in re.split("[&#]", found["query"])}
    return {form for secret in secrets for form in (secret, unquote(secret), unquote_plus(secret))} - {""}
