"""Addresses in messages."""

import pytest

from pytest_opprof.addresses import said_of, shown


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://user:s3cret@host/x.git", "https://user:***@host/x.git"),
        ("https://s3cret@host/x.git", "https://***@host/x.git"),
        ("ftp://:s3%20cret@host/x", "ftp://:***@host/x"),
        ("ftp://a:s3cret@b@host:22/x", "ftp://a:***@host:22/x"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("ssh://git:s3cret@host/x", "ssh://git:***@host/x"),
        ("git@host:owner/x.git", "git@host:owner/x.git"),
        ("https://host/x?sig=s3cret&se=2", "https://host/x?***"),
        ("https://host/x#s3cret", "https://host/x?***"),
        ("s3://bucket/folder", "s3://bucket/folder"),
        ("git:", "git:"),
        ("see a@b.org, or https://host/.", "see a@b.org, or https://host/."),
    ],
)
def test_secrets_are_hidden(address: str, expected: str) -> None:
    assert shown(address) == expected
    assert shown(f"unable to access '{address}': no") == f"unable to access '{expected}': no"
    assert shown(shown(address)) == expected


@pytest.mark.parametrize(
    "address",
    [
        "ftp://me:s3%20cret@host/x",
        "https://s3 cret@host/x".replace(" ", "%20"),
        "https://host/x?sig=s3+cret&se=2026",
    ],
)
def test_messages_hide_an_addresss_secrets(address: str) -> None:
    said = said_of(address, f"login as s3 cret failed for {address}")
    assert "s3" not in said
    assert "cret" not in said
    assert said.startswith("login as *** failed for ")
