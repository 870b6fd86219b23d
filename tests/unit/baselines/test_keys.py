"""Names, keys, and the information in keys."""

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.stores import FAMILY, NOBODY, key, place_of, run_of
from support.documents.strategies import simple_run

from pytest_opprof.baselines.git_ref import part_of_ref
from pytest_opprof.baselines.keys import check_name, created_in, entry_of, is_key, is_name, key_of
from pytest_opprof.errors import UsageError

COMMIT = "1" * 40


@pytest.mark.parametrize(
    ("key", "commit", "is_dirty"),
    [
        (COMMIT, COMMIT, False),
        (f"{COMMIT}-dirty", COMMIT, True),
        ("2" * 64, "2" * 64, False),
        ("1" * 39, None, False),
        ("20260102T000000.000000Z-abc", None, False),
    ],
)
def test_key_says_the_commit(key: str, commit: str | None, *, is_dirty: bool) -> None:
    entry = entry_of("main", key, created=datetime(2026, 1, 1, tzinfo=UTC), place="", parts=())
    assert (entry.commit, entry.is_dirty) == (commit, is_dirty)
    assert is_key(key)


def test_run_is_kept_under_its_commit_or_its_time() -> None:
    assert key_of(run_of(1)) == key(1)
    assert key_of(run_of(1, dirty=True)) == key(1, dirty=True)
    assert key_of(simple_run()) == f"20260102T000000.000000Z-abc_{FAMILY}"
    assert is_key(key_of(simple_run()))


@pytest.mark.parametrize("text", ["", ".hidden", "a b", "a/b", "../x", "-x", "x" * 200, "a\nb"])
def test_foreign_text_is_not_a_key(text: str) -> None:
    assert not is_key(text)


@pytest.mark.parametrize(
    ("head", "created"),
    [
        (
            b'{"kind": "opprof-run", "created": "2026-01-02T03:04:05+00:00"',
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        ),
        (b'{"created":"2026-01-02T05:04:05+02:00"', datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (b'{"created": "2026-13-02T03:04:05+00:00"', None),
        (b'{"created": 5}', None),
        (b" " * 5000 + b'"created": "2026-01-02T03:04:05+00:00"', None),
        (b"", None),
    ],
)
def test_time_stands_near_the_beginning(head: bytes, created: datetime | None) -> None:
    assert created_in(head) == created


@pytest.mark.parametrize("kind", ["dir", "counts", "git"])
def test_the_longest_name_can_be_saved(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    longest = "界" * 25
    place_of(kind, tmp_path, request).archive().save(longest, run_of(1), collected=NOBODY)
    assert place_of(kind, tmp_path, request).archive().names() == (longest,)
    with pytest.raises(UsageError, match=r"at most 230 bytes, quoted as in a URL"):
        check_name(longest + "界", where="")


@given(st.text(max_size=40).filter(is_name))
def test_any_name_is_a_part_of_a_ref_and_back(name: str) -> None:
    part = part_of_ref(name)
    assert unquote(part) == name
    # Names that git-check-ref-format refuses, and names that would be a folder of another name.
    assert part.isascii()
    assert not set(part) & set(" ~^:?*[\\/{")
    assert ".." not in part
    assert not part.startswith(".")
    assert not part.endswith((".", ".lock"))
