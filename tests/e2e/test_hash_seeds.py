"""Counts that depend on the order of a set never make unchanged code REGRESSED, even if certified by luck."""

from functools import partial

import pytest
from e2e.project import Project

from pytest_opprof.results.files import read_run

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    MORE = 0

    @pytest.mark.profile
    def test_first_of_a_set():
        first = next(iter({"a", "b"}))
        for _ in range((1 if first == "CERTIFYING" else 2) + MORE):
            with record_function("work"):
                pass
"""


def seeds_by_order(project: Project) -> dict[str, list[str]]:
    """Hash seeds, by the element that they put first."""
    found: dict[str, list[str]] = {"a": [], "b": []}
    project.write("first.py", 'print(next(iter({"a", "b"})))')
    for seed in map(str, range(1, 30)):
        done = project.python("first.py", env={"PYTHONHASHSEED": seed})
        found[done.stdout.strip()].append(seed)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["here", "xdist"])
def test_other_hash_seed_is_not_a_regression(project: Project, workers: tuple[str, ...]) -> None:
    plugins = ("xdist",) if workers else ()
    seeds = seeds_by_order(project)
    certifying = next(order for order in seeds if "1" in seeds[order])  # the first fresh process's
    project.write("test_it.py", TESTS.replace("CERTIFYING", certifying))
    (other,) = {"a", "b"} - {certifying}
    alike, unlike = seeds[certifying][-1], seeds[other][-1]
    saved = project.pytest("--opprof-save=main", env={"PYTHONHASHSEED": alike})
    assert saved.exit_code == 0
    (stored,) = read_run(project.stored()[-1]).tests
    assert (stored.processes, stored.unstable) == (2, ())  # by luck
    compared = partial(
        project.pytest, *workers, "--opprof-baseline=main", plugins=plugins, env={"PYTHONHASHSEED": unlike}
    )
    session = compared()
    assert session.failures["test_first_of_a_set"].startswith("INCONCLUSIVE: ")
    assert "became nondeterministic: 1 before, 1 to 2" in session.failures["test_first_of_a_set"]
    project.replace("test_it.py", "MORE = 0", "MORE = 2")
    more = compared()
    assert more.failures["test_first_of_a_set"].startswith("REGRESSED: ")


def test_a_save_with_a_certifying_seed_takes_another(project: Project) -> None:
    project.write("test_it.py", TESTS)
    project.write(
        "conftest.py", "import os\n\nprint('SEED', os.environ['PYTHONHASHSEED'], file=open('seeds', 'a'))\n"
    )
    project.pytest("--opprof-save=main", "--opprof-save-processes=3", env={"PYTHONHASHSEED": "1"})
    seeds = (project.folder / "seeds").read_text().split("\n")
    assert seeds[:-1] == ["SEED 1", "SEED 2", "SEED 3"]
