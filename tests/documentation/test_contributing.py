"""Files and commands named in CONTRIBUTING.md and docs/architecture.md exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "docs/architecture.md")
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
# C files are named by their unit only, in any folder, as are files in a folder that the same line names.
NAMES = {
    path.name for folder in ("native", "pytest_opprof", "schemas") for path in (ROOT / folder).rglob("*.*")
}


def named(page: str) -> list[str]:
    return re.findall(
        r"[\w./-]+\.(?:py|c|h|cpp|md|json|yml|toml)\b", (ROOT / page).read_text(encoding="utf-8")
    )


def is_there(name: str, page: str) -> bool:
    places = (ROOT, ROOT / "pytest_opprof", (ROOT / page).parent)
    return any((place / name).exists() for place in places) or name in NAMES


@pytest.mark.parametrize("page", PAGES)
def test_every_named_file_exists(page: str) -> None:
    found = named(page)
    assert len(found) > 20
    assert [name for name in found if not is_there(name, page)] == []


def test_every_command_is_a_target() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(TARGETS)


def test_missing_name_is_found() -> None:
    assert not is_there("pytest_opprof/nowhere.py", PAGES[0])
    assert not is_there("nowhere.c", PAGES[0])
