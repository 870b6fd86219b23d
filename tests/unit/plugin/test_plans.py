"""What a session has collected wholly, partly, or not at all."""

from pathlib import Path

import pytest

from pytest_opprof.plugin.plans import collected_by
from pytest_opprof.plugin.stash import UNREAD
from pytest_opprof.results.merge import Collected


def collected(lone: pytest.Pytester, *arguments: str, unread: tuple[Path, ...] = ()) -> Collected:
    config = lone.parseconfigure(*arguments)
    config.stash[UNREAD].update(unread)
    return collected_by(config, [])


@pytest.fixture(autouse=True)
def _tests(lone: pytest.Pytester) -> None:
    for name in ("tests/test_a.py", "tests/more/test_b.py"):
        path = lone.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def test_it(): pass\n")


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        ((), {"."}),
        (("tests",), {"tests"}),
        (("tests/", "./tests/more/../test_a.py"), {"tests", "tests/test_a.py"}),
        (("tests/test_a.py::test_it",), set[str]()),
        (("tests/test_a.py::test_it", "tests/more"), {"tests/more"}),
        (("tests", "--lf"), set[str]()),
        (("tests", "-k", "it", "-m", "not slow"), {"tests"}),
        (("--rootdir=tests", "tests/more"), {"more"}),
    ],
    ids=[
        "nothing",
        "folder",
        "odd spelling",
        "node id",
        "both",
        "last failed",
        "deselecting",
        "another root",
    ],
)
def test_paths_are_whole_as_node_ids_spell_them(
    lone: pytest.Pytester, arguments: tuple[str, ...], whole: set[str]
) -> None:
    assert collected(lone, *arguments).whole_paths == whole


def test_paths_start_from_where_pytest_was_started(
    lone: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lone.path / "tests" / "more")
    assert collected(lone, "..", "--rootdir", str(lone.path)).whole_paths == {"tests"}


def test_packages_are_found_by_name(lone: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("made_up", "made_up/tests"):
        lone.mkdir(folder)
        lone.path.joinpath(folder, "__init__.py").touch()
    monkeypatch.syspath_prepend(lone.path)
    assert collected(lone, "--pyargs", "made_up.tests", "tests").whole_paths == {"made_up/tests", "tests"}


def test_paths_outside_the_root_are_unknown(
    lone: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    found = collected(
        lone, "-p", "opprof", f"--rootdir={lone.path}", str(elsewhere), unread=(elsewhere / "test_x.py",)
    )
    assert found == Collected()


def test_unread_paths_lack_no_tests(lone: pytest.Pytester) -> None:
    found = collected(lone, "tests", unread=(lone.path / "tests" / "more",))
    assert found.unread_paths == {"tests/more"}
    assert found.lacks("tests/test_a.py::test_gone")
    assert not found.lacks("tests/more/test_b.py::test_gone")
    assert not found.lacks("other/test_c.py::test_gone")
