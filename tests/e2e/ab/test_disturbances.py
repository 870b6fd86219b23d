"""An A/B whose processes hang or die, or whose files change during the run."""

import re
from pathlib import Path

import pytest
from e2e.ab.experiments import DISTURBING, ab, experiments, nothing_left
from e2e.project import Project


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


@pytest.mark.slow
def test_a_head_that_changes_meanwhile_is_not_measured(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    told = ab(project, "HEAD", env={"COUNTED": str(tmp_path / "counted"), "CHANGED_AT": "2"})
    assert told.code == 9
    assert told.stderr.startswith(
        "opprof: the head's files changed during the experiment: work.py. Start again"
    )
    assert (experiments(project), nothing_left(project)) == ([], True)


@pytest.mark.slow
def test_a_side_whose_processes_die_is_given_up(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING.replace("and not once.exists()", ""))
    project.commit()
    killed = " ".join(map(str, range(3, 20)))
    told = ab(project, "HEAD", env={"COUNTED": str(tmp_path / "counted"), "KILLED_AT": killed})
    assert told.code == 9
    assert re.match(r"opprof: 4 processes of the (base|head) died; the last: killed by SIGKILL", told.stderr)
    assert told.stdout.count("died and is run again") == 3
