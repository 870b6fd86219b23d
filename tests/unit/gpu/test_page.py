from datetime import date
from pathlib import Path

from gpu.machine import Machine
from gpu.page import INTRODUCTION, NEVER_RUN, UNPROVED, Line, Verdict, page

MACHINE = Machine(
    gpu="NVIDIA Test",
    driver="575.1",
    cuda="12.9",
    cupti="libcupti.so.12 (API 26)",
    versions={"torch": "2.13"},
)


def test_committed_page_matches_a_printed_one(repository: Path) -> None:
    kept = (repository / "docs" / "gpu-validation.md").read_text(encoding="utf-8")
    ran = page(MACHINE, ())
    head, tail = ran.split("- date:")[0], UNPROVED
    assert kept == page(None, ()) or (kept.startswith(head) and kept.endswith(tail) and "| holds |" in kept)


def test_without_a_run_the_page_says_that_nothing_is_proved() -> None:
    text = page(None, ())
    assert NEVER_RUN in text
    assert "has not run on hardware yet" in text
    assert "| what |" not in text


def test_a_run_is_printed_with_its_machine() -> None:
    lines = [
        Line(what="graph", ours="5", torch="5", verdict=Verdict.HOLDS),
        Line(what="cupy", verdict=Verdict.NOT_RUN, detail="cupy is not installed"),
        Line(what="a|b", ours="4", torch="5", verdict=Verdict.FAILS, detail="gemm: 4\n5"),
    ]
    text = page(MACHINE, lines, day=date(2026, 1, 2))
    assert NEVER_RUN not in text
    assert INTRODUCTION in text
    for line in (
        "- date: 2026-01-02",
        "- GPU: NVIDIA Test",
        "- driver: 575.1",
        "- torch: 2.13",
        "| graph | 5 | 5 | yes |",
        "| cupy |  |  | not run: cupy is not installed |",
        "| a\\|b | 4 | 5 | NO: gemm: 4 5 |",
    ):
        assert line in text.splitlines()
