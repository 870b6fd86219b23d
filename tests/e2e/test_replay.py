"""Machine instructions under QEMU: code can be slower without running more Python instructions."""

import json
import shutil
import textwrap

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session
from e2e.slower_code import SLOWER, TESTS

from pytest_opprof.capture.replay import QEMU

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which(QEMU) is None, reason=f"{QEMU} is not installed"),
]

REPLAY = ("pytest_opprof", "replay")
WIDE = {"COLUMNS": "300"}
IN_C = ["list_for_set", "backtracking"]

TORCH = """\
    import pytest, torch
    torch.set_num_threads(1)

    @pytest.mark.profile
    def test_{name}():
        a = torch.ones(256, 256{dtype})
        b = a{strides}
        for _ in range(4):
            b = a * 2 + b
"""


def replayed(project: Project, *arguments: str, timeout: float = 300) -> Session:
    return project.pytest(*arguments, program=REPLAY, env=WIDE, timeout=timeout)


def slowed(project: Project, kinds: list[str]) -> Session:
    """The report of code that became slower in these ways."""
    for kind in kinds:
        project.write(f"{kind}.py", SLOWER[kind][0])
    project.write("test_it.py", textwrap.dedent(TESTS.format(kinds=kinds)))
    assert replayed(project, "--opprof-save=native").exit_code == 0
    for kind in kinds:
        project.write(f"{kind}.py", SLOWER[kind][1])
    return replayed(project, "--opprof-baseline=native", "-v")


def test_loops_in_c_are_seen_and_their_functions_are_named(make_project: MakeProject) -> None:
    project = make_project("in_c")
    session = slowed(project, IN_C)
    for kind in IN_C:
        section = session.failures[f"test_kind[{kind}]"]
        assert "more machine instructions in each step" in section
        assert "machine instructions rose in " in section
    rows = session.result("test_kind[backtracking]").functions["native.instructions"]
    assert sum("libpython" in row or "python3" in row or "_sre" in row for row in rows) > 1
    # Unchanged code passes in a process with other addresses.
    for kind in IN_C:
        project.write(f"{kind}.py", SLOWER[kind][0])
    same = replayed(project, "--opprof-baseline=native")
    assert same.exit_code == 0
    assert "2 passed" in same.stdout


@pytest.mark.slow
def test_all_kinds_of_slower_code_are_seen(make_project: MakeProject) -> None:
    session = slowed(make_project("all"), list(SLOWER))
    assert session.failures.keys() == {f"test_kind[{kind}]" for kind in SLOWER}


@pytest.mark.slow
def test_strides_and_wider_types_are_seen_in_the_same_ops(make_project: MakeProject) -> None:
    pytest.importorskip("torch")
    project = make_project("torch")
    slower = {
        "strides": {"dtype": "", "strides": ".T"},
        "type": {"dtype": ", dtype=torch.float64", "strides": ""},
    }
    for name in slower:
        project.write(f"test_{name}.py", TORCH.format(name=name, dtype="", strides=""))
    assert replayed(project, "--opprof-save=native").exit_code == 0
    assert replayed(project, "--opprof-baseline=native").exit_code == 0
    for name, how in slower.items():
        project.write(f"test_{name}.py", TORCH.format(name=name, **how))
    session = replayed(project, "--opprof-baseline=native")
    for name in slower:
        assert "all machine instructions" in session.failures[f"test_{name}"]
    # The failure of float64 starts with its bytes, which also rose.
    assert "more machine instructions in each step" in session.failures["test_strides"]
    assert "libtorch_cpu.so" in session.failures["test_strides"]


def test_only_python_instructions_are_independent_of_the_cpu(
    make_project: MakeProject,
) -> None:
    project = make_project("cpus")
    project.write(
        "work.py", "def work(n=300):\n    text = ''\n    for i in range(n):\n        text += str(i)\n"
    )
    project.write("test_it.py", textwrap.dedent(TESTS.format(kinds=["work"])))
    found = []
    for cpu in ("Haswell-v4", "Nehalem"):
        session = replayed(project, f"--cpu={cpu}", "--opprof-save=cpu", "--opprof-save-processes=1")
        (test,) = json.loads(session.document.read_text())["tests"]
        found.append(test)
    here, there = ({name: test["functions"][name] for name in test["functions"]} for test in found)
    native = "native.instructions"
    assert here.pop(native) != there.pop(native)
    assert here == there
    assert found[0]["totals"]["python.instructions"] == found[1]["totals"]["python.instructions"] > 1_000
    # saved on the last CPU, compared on the first
    other = replayed(project, "--opprof-baseline=cpu", "--opprof-fail-on=regressed,inconclusive")
    assert other.exit_code == 1
    assert "CPU of opprof replay" in other.stdout


def test_missing_qemu_says_what_to_install(make_project: MakeProject) -> None:
    done = make_project("none").python("-m", "pytest_opprof", "replay", env={"PATH": "/nowhere"})
    assert done.returncode == 3
    assert (
        "opprof: opprof replay needs qemu-x86_64, which was not found. It needs QEMU 4.2 to 8.2, in user mode with plugins"
        in done.stderr
    )


def test_a_cpu_that_qemu_does_not_know_is_refused(make_project: MakeProject) -> None:
    done = make_project("unknown").python("-m", "pytest_opprof", "replay", "--cpu=Abacus")
    assert done.returncode == 3
    assert "cannot count the instructions of the CPU 'Abacus': " in done.stderr
