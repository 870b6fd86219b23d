"""Each fuzzed reader accepts our writers' files, and refuses in one sentence inputs that once crashed it."""

from pathlib import Path

import pytest
from fuzz.catalog import NAMES, target_of
from fuzz.target import CORPORA, FOUND

INPUTS = [(name, path) for name in NAMES for path in target_of(name).corpus()]
NOISE = (b"", b"\0", b"{", b"[]", b"\xff" * 64, b"\x1f\x8b\x08", b"SQLite format 3\0" + b"\xff" * 600)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path"), [pytest.param(name, path, id=f"{name}/{path.name}") for name, path in INPUTS]
)
def test_reader_takes_its_corpus(name: str, path: Path, tmp_path: Path) -> None:
    accepted = target_of(name).attempt(path.read_bytes(), tmp_path)
    again = "the corpus is of another release: PYTHONPATH=tests python -m fuzz.seeds writes it anew"
    assert accepted or path.name.startswith(FOUND), again


@pytest.mark.parametrize("name", NAMES)
def test_reader_survives_noise(name: str, tmp_path: Path) -> None:
    for noise in NOISE:
        target_of(name).attempt(noise, tmp_path)


def test_every_reader_has_a_corpus() -> None:
    assert {path.name for path in CORPORA.iterdir()} == set(NAMES)
    assert all(target_of(name).corpus() for name in NAMES)
