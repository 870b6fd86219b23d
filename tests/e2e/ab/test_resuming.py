"""An A/B resumes after an interruption, and measures more on a disturbed machine."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from e2e.ab.experiments import DISTURBING, NOT_BY_TIME, ab, experiments, nothing_left
from e2e.project import Project

from pytest_opprof.experiment.interleave import Side
from pytest_opprof.results.files import read_run, write_run


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_interrupted_measurements_are_kept_and_resumed(project: Project, tmp_path: Path, name: str) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    counted = {"COUNTED": str(tmp_path / "counted"), "SIGNAL": name}
    # Two trial processes come first; the seventh measured one is interrupted, the fourth is killed.
    disturbed = counted | {"INTERRUPTED_AT": "9", "KILLED_AT": "6"}
    first = ab(
        project, "HEAD", "tests", "--processes=8", "--steps=2", "--seed=5", "--max-time=0", env=disturbed
    )
    assert first.code == 128 + signal.SIGINT
    assert "died and is run again: killed by SIGKILL" in first.stdout
    (kept,) = experiments(project)
    done = sorted(path.name for path in kept.glob("first-*.json.gz"))
    assert len(done) == 5
    resume = (
        f"opprof: 5 processes are kept in .opprof/ab/{kept.name}; resume with: opprof ab --resume={kept.name} "
        "HEAD tests --processes=8 --steps=2 --seed=5 --max-time=0"
    )
    assert first.stderr.splitlines() == [resume, "opprof: interrupted"]
    assert nothing_left(project)
    other = ab(project, "HEAD", f"--resume={kept.name}", "--seed=6", env=counted)
    assert (other.code, "has another seed" in other.stderr) == (2, True)
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("first-*.json.gz")}
    # As many processes as may die did so before the interruption, and another one does now.
    (death,) = json.loads((kept / "deaths.json").read_text())
    many = [{**death, "side": side} for side in Side for _ in range(3)]
    (kept / "deaths.json").write_text(json.dumps(many))
    (tmp_path / "counted-once").unlink()
    # no machine is so quiet
    second = ab(
        project, "HEAD", f"--resume={kept.name}", "-v", "--max-noise=0%", env=counted | {"KILLED_AT": "12"}
    )
    assert second.code == 1
    second.lines.fnmatch_lines(["test_other *INCONCLUSIVE *its base differs from itself by *"])
    after = {path.name: path.stat().st_mtime_ns for path in kept.glob("first-*.json.gz")}
    assert len(after) == 16
    assert all(after[path] == before[path] for path in before), "not measured again"
    second.lines.fnmatch_lines(
        ["processes that died and were run again: [34] of the base and [34] of the head"]
    )
    assert "base and head are the same code" in second.stdout
    again = ab(project, "HEAD", f"--resume={kept.name}", env=counted)
    assert (again.code, "it is finished" in again.stderr) == (2, True)


@pytest.mark.slow
def test_tests_that_met_a_disturbed_machine_get_more_processes(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    counted = {"COUNTED": str(tmp_path / "counted"), "SIGNAL": "SIGINT"}
    options = ("HEAD", "tests", "--processes=8", "--steps=2", "--max-time=0.1")
    # Of 18 processes, two are trials; all but the last measured one are finished.
    ab(project, *options, env=counted | {"INTERRUPTED_AT": "18"})
    (kept,) = experiments(project)
    first = sorted(kept.glob("first-*.json.gz"))
    assert len(first) == 15
    for at, path in enumerate(first):
        run = read_run(path)
        (test,) = run.tests
        # All but one of a side ran at a speed that no real machine has, so no further process matches it.
        timing = replace(test.timing, probe_ns=2 if at in {0, 1} else 1)
        write_run(path, replace(run, tests=(replace(test, timing=timing),)))
    second = ab(project, *options, "--resume", "--max-noise=10000%", env=counted)
    second.lines.fnmatch_lines(
        ["15/16 processes · *", "17/32 processes · *", "32/32 processes · *", "* processes a side*"]
    )
    assert "the machine was disturbed in " in second.stdout
    second.lines.fnmatch_lines(
        [
            f"resuming {kept.name}; unfinished: {kept.name} (15 of 16 processes)",
            "the machine was busy: tests/test_it.py::* had too few undisturbed processes, so up to 16 more run",
        ]
    )
    assert len(list(kept.glob("first-*.json.gz"))) == 32


@pytest.mark.slow
def test_resume_finds_the_newest_same_plan_from_a_subfolder(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    counted = {"COUNTED": str(tmp_path / "counted"), "SIGNAL": "SIGINT"}
    options = ("HEAD", "test_it.py", "--steps=2", "--processes=8", "-p", "no:cacheprovider")
    project.replace("work.py", "range(30_000)", "range(300_000)")
    first = ab(project, *options, cwd="tests", env=counted | {"INTERRUPTED_AT": "4"})
    assert first.code == 128 + signal.SIGINT
    refused = ab(project, *options, "--setup=true", "--resume", cwd="tests", env=counted)
    assert (refused.code, "no unfinished experiment has these options" in refused.stderr) == (2, True)
    # Even ten times slower is not a change here, so load on the machine cannot fail it.
    lenient = ("--min-effect=10000%", "--max-noise=10000%", "--fail-on=regressed")
    quiet = ab(project, *options, *lenient, "-q", "--resume", cwd="tests", env=counted)
    assert quiet.code == 0
    assert len(quiet.stdout.splitlines()) == 1
    assert len(experiments(project)) == 1
    assert nothing_left(project)


@pytest.mark.slow
def test_a_result_that_cannot_be_written_is_judged_again_without_measuring(
    project: Project, tmp_path: Path
) -> None:
    in_the_way = f"    import os; os.makedirs({str(tmp_path / 'ab.json')!r}, exist_ok=True)\n"
    project.write("tests/test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it():\n" + in_the_way)
    project.commit()
    options = ("HEAD", "tests", "--processes=8", "--steps=1", "--max-time=0", *NOT_BY_TIME)
    first = ab(project, *options, "-o", str(tmp_path / "ab.json"))
    assert (first.code, "cannot be written: it is a folder" in first.stderr) == (5, True)
    first.lines.fnmatch_lines(["test_it *PASS*"])
    (kept,) = experiments(project)
    assert f"resume with: opprof ab --resume={kept.name} HEAD" in first.stderr
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json.gz")}
    second = ab(project, *options, f"--resume={kept.name}", "-o", str(tmp_path / "other.json"))
    assert second.code == 0
    assert (tmp_path / "other.json").exists()
    assert {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json.gz")} == before
    assert (kept / "finished").exists()
