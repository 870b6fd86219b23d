"""An A/B whose processes hang or die, or whose files change during the run."""

import re
from pathlib import Path

import pytest
from e2e.ab.experiments import DISTURBING, ab, experiments, nothing_left
from e2e.project import Project

from pytest_opprof.experiment.interleave import Side, turns


@pytest.mark.slow
def test_a_process_that_hangs_is_ended_and_run_again(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    counted = {"COUNTED": str(tmp_path / "counted")}
    hung = ab(project, "HEAD", "--processes=8", "--steps=2", "--timeout=30", env=counted | {"HANGS_AT": "4"})
    assert hung.code in {0, 1}
    assert "died and is run again: no end in 30 s (--timeout):" in hung.stdout
    assert "KeyboardInterrupt" in hung.stdout, "where it hung"
    assert "processes that died and were run again: 1 of the" in hung.stdout
    assert nothing_left(project)


# The second process is tried on the head; then the order of the sides is the seed's.
LATER = [3 + turn.index for turn in turns(8, seed=5) if turn.side is Side.HEAD][1]


@pytest.mark.slow
@pytest.mark.parametrize(("at", "kept"), [(2, 0), (LATER, 1)], ids=["tried", "measured"])
def test_a_head_that_changes_meanwhile_is_not_measured(
    project: Project, tmp_path: Path, at: int, kept: int
) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    env = {"COUNTED": str(tmp_path / "counted"), "CHANGED_AT": str(at)}
    told = ab(project, "HEAD", "--processes=8", "--steps=2", "--max-time=0", "--seed=5", env=env)
    assert told.code == 9
    assert told.stderr == (
        "opprof: the head's files changed during the experiment: work.py. Start again, and do not edit them "
        "until it ends\n"
    ), "not how to resume, which cannot work"
    assert (len(experiments(project)), nothing_left(project)) == (kept, True)


@pytest.mark.slow
def test_a_side_whose_processes_die_is_given_up(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING.replace("and not once.exists()", ""))
    project.commit()
    killed = " ".join(map(str, range(3, 20)))
    told = ab(project, "HEAD", env={"COUNTED": str(tmp_path / "counted"), "KILLED_AT": killed})
    assert told.code == 9
    assert re.match(r"opprof: 4 processes of the (base|head) died; the last: killed by SIGKILL", told.stderr)
    assert told.stdout.count("died and is run again") == 3
