"""The detectors that `make mutants` silences: each detector and its test exist."""

import ast
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import mutants.__main__
import pytest
from mutants.__main__ import Book, main
from mutants.detector import Detector, Layer
from mutants.every import DETECTORS
from mutants.page import PAGE, page
from mutants.tree import Tree
from mutants.trial import checks_of, is_native

BUDGET = next(detector for detector in DETECTORS if detector.name == "events past the budget")
LAST_LINE = next(detector for detector in DETECTORS if detector.name == "samples in the last line")


@pytest.mark.parametrize("layer", Layer)
def test_silenced_text_occurs_once(layer: Layer, repository: Path) -> None:
    """The edited file is still Python: the test must fail for the missing check, not a syntax error."""
    for detector in DETECTORS:
        if detector.layer is layer:
            text = detector.edited(repository)
            assert text != (repository / detector.file).read_text(encoding="utf-8"), detector.name
            if detector.file.endswith(".py"):
                ast.parse(text, filename=detector.name)


def test_every_layer_has_its_own_detectors() -> None:
    assert {detector.layer for detector in DETECTORS} == set(Layer)
    assert [name for name, many in Counter(one.name for one in DETECTORS).items() if many > 1] == []
    edits = Counter((one.file, one.text, one.without) for one in DETECTORS)
    assert [edit for edit, many in edits.items() if many > 1] == []


def test_every_detectors_test_exists(repository: Path) -> None:
    named: dict[str, set[str]] = {}
    for detector in DETECTORS:
        file, _, test = detector.test.partition("::")
        named.setdefault(file, set()).add(test)
    for file, tests in named.items():
        path = repository / file
        known = checks_of(path) if is_native(file) else functions_of(path)
        assert tests <= set(known), file


def functions_of(path: Path) -> list[str]:
    """The tests of a file that pytest finds; none is in a class."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return [one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_page_is_generated_from_the_detectors(repository: Path) -> None:
    text = (repository / PAGE).read_text(encoding="utf-8")
    assert text == page(DETECTORS), "make mutants MUTANTS=--write"


@pytest.mark.parametrize("text", ["neither", "twice"])
def test_edit_without_a_unique_place_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text("twice\ntwice\n", encoding="utf-8")
    detector = replace(BUDGET, file="a.py", text=text)
    with pytest.raises(ValueError, match=r"events past the budget: a\.py has its text [02] times"):
        detector.edited(tmp_path)


def test_copy_is_edited_and_restored(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "pytest_opprof").mkdir(parents=True)
    source = repository / "pytest_opprof" / "a.py"
    source.write_text("told = True\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", repository], check=True)
    tree = Tree(repository, folder=tmp_path / "build")
    first = tree.copy()
    copy = tree.root / "pytest_opprof" / "a.py"
    with tree.without(silent("told = True", "told = False")):
        assert copy.read_text(encoding="utf-8") == "told = False\n"
        assert source.read_text(encoding="utf-8") == "told = True\n"
    assert copy.read_text(encoding="utf-8") == "told = True\n"
    copy.write_text("a run that was killed left it so\n", encoding="utf-8")
    (tree.root / "pytest_opprof" / "gone.py").touch()
    assert tree.copy() == first
    assert copy.read_text(encoding="utf-8") == "told = True\n"
    assert sorted(path.name for path in copy.parent.iterdir()) == ["a.py"]
    source.write_text("told = 1\n", encoding="utf-8")
    assert tree.copy() != first


def silent(text: str, without: str) -> Detector:
    """A detector of the file that the test above has."""
    return replace(BUDGET, file="pytest_opprof/a.py", text=text, without=without)


def test_an_interrupted_run_knows_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    Book(path, digest="a")["one"] = "failed"
    again, other = Book(path, digest="a"), Book(path, digest="b")
    assert (again["one"], again["two"], other["one"]) == ("failed", None, None)
    again.close()
    assert Book(path, digest="a")["one"] is None


def test_unknown_detector_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nobody"])
    assert f"no detector nobody; {PAGE} lists them" in capsys.readouterr().err


@pytest.mark.slow
def test_silenced_detector_is_caught_and_harmless_edit_survives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harmless = [
        replace(one, name=f"harmless {at}", without=f"{one.text}  ")
        for at, one in enumerate((BUDGET, LAST_LINE))
    ]
    monkeypatch.setattr(mutants.__main__, "DETECTORS", (BUDGET, LAST_LINE, *harmless))
    chosen = [part for one in (BUDGET, LAST_LINE, *harmless) for part in ("--only", one.name)]
    assert main(chosen) == 1
    assert capsys.readouterr().out.splitlines() == [
        "the tests, of the sources as they are:",
        "all 2 hold",
        f"caught: {BUDGET.name} -> {BUDGET.test}",
        f"caught: {LAST_LINE.name} -> {LAST_LINE.test}",
        f"SURVIVED: harmless 0 -> {BUDGET.test}",
        f"SURVIVED: harmless 1 -> {LAST_LINE.test}",
        "4 detectors: 2 SURVIVED, 2 caught",
    ]
    assert main([*chosen[:4]]) == 0
