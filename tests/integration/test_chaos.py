"""`make chaos` detects faults, and a few of its sessions pass."""

import random
from pathlib import Path

import pytest
from chaos.__main__ import main
from chaos.faults import FAULTS, MOUNTED
from chaos.sessions import Drawn, Ended, Mode, draw, problems_of_files, problems_of_session, stored

NO_FAULT = next(fault for fault in FAULTS if fault.name == "none")
CUT = next(fault for fault in FAULTS if fault.spoils_baseline)


def drawn(*, is_changed: bool = False, saves: bool = False, fault: str = "none") -> Drawn:
    (found,) = (one for one in FAULTS if one.name == fault)
    return Drawn(fault=found, mode=Mode.PLAIN, saves=saves, is_changed=is_changed, moment=0)


@pytest.mark.parametrize(
    ("session", "ended", "problem"),
    [
        (drawn(), Ended(code=0, output="3 passed"), None),
        (drawn(), Ended(code=1, output="INCONCLUSIVE: events dropped"), None),
        (drawn(is_changed=True), Ended(code=1, output="REGRESSED"), None),
        (drawn(fault="SIGKILL"), Ended(code=-9, output=""), None),
        (drawn(), Ended(code=None, output=""), "hangs"),
        (drawn(is_changed=True), Ended(code=0, output="3 passed"), "passes a test that does more"),
        (drawn(), Ended(code=1, output="1 REGRESSED"), "nothing changed"),
        (drawn(fault=CUT.name), Ended(code=0, output=""), "without a baseline that can be read"),
        (
            drawn(),
            Ended(code=3, output="Traceback (most recent call last)\n  x/pytest_opprof/a.py"),
            "a traceback of ours",
        ),
    ],
)
def test_wrong_session_is_detected(session: Drawn, ended: Ended, problem: str | None) -> None:
    found = list(problems_of_session(ended, session))
    assert (problem is None) == (not found)
    assert problem is None or problem in found[0]


def test_lost_files_are_detected(tmp_path: Path) -> None:
    store = tmp_path / ".opprof" / "main"
    store.mkdir(parents=True)
    (store / "a.json").write_text("{}")
    before = {**stored(tmp_path), "b.json": b"{}"}
    found = list(problems_of_files(tmp_path, before, drawn()))
    assert found[0] == "b.json is gone"
    assert found[1].startswith("a.json cannot be read: ")
    (store / "a.json").write_text("[]")
    assert "a.json is another, and nothing was to be saved" in problems_of_files(tmp_path, before, drawn())


def test_a_seed_draws_the_same_again() -> None:
    chances = [random.Random(7), random.Random(7)]  # noqa: S311 - a drawing that can be repeated
    first, second = ([draw(chance, FAULTS + MOUNTED) for _ in range(30)] for chance in chances)
    assert first == second
    assert len({str(one) for one in first}) > 10


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["none", "segfault", "SIGKILL", "full disk", "few descriptors"])
def test_sessions_survive_each_fault(fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--sessions", "2", "--seed", "5", "--fault", fault]) == 0, capsys.readouterr().out
