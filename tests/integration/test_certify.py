"""A saved baseline is measured again in a fresh process, whatever options the first one had."""

import os
import re
import signal

import pytest
from e2e.project import INI, Project

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Run


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """This test's own project."""
    return Project(tmp_path_factory.mktemp("certify") / "project")


def stored(project: Project) -> Run:
    return read_run(project.stored()[-1])


@pytest.mark.slow
def test_certification_ignores_other_options(project: Project) -> None:
    pytest.importorskip("xdist")
    pytest.importorskip("pytest_randomly")
    addopts = "addopts = -p opprof -p xdist -p randomly -n 2 --ff -m 'not slow' --maxfail=9 --durations=1"
    markers = "markers = slow: takes its time\nrequired_plugins = pytest-opprof\n"
    project.write("pytest.ini", INI.replace("addopts = -p opprof", addopts) + markers)
    project.write(
        "conftest.py",
        """\
        import pytest

        def pytest_addoption(parser):
            parser.addoption("--device")
            parser.addoption("--many", type=int)

        @pytest.fixture
        def device(request):
            return request.config.getoption("--device") * request.config.getoption("--many")
        """,
    )
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.slow
        @pytest.mark.profile
        def test_slow(device, cache):
            with record_function(device):
                pass

        @pytest.mark.slow
        @pytest.mark.profile
        def test_left_out(): pass

        @pytest.mark.profile
        def test_quick(): pass
        """,
    )
    session = project.pytest(
        *("-m", "slow", "-x", "-vv", "--device", "cpu", "--many=2"),
        *("--deselect", "test_it.py::test_left_out"),
        *("--lf", "-n", "1", "--dist", "loadfile", "--randomly-seed=5", "-rA", "--opprof-save=main"),
        *("--opprof-rows", "3", "--opprof-traces", "traces", "test_it.py"),
    )
    assert session.exit_code == 0
    assert not any("not certified" in line for line in session.told)
    run = stored(project)
    assert [(test.node_id, test.processes) for test in run.tests] == [("test_it.py::test_slow", 2)]
    assert "cpucpu" in {row.name for row in run.tests[0].ops}
    assert session.outcomes == {"test_slow": "passed"}, "the first process's report is not written over"
    assert len(list((project.folder / "traces").iterdir())) == 1


def test_the_second_process_runs_the_same_tests_in_reverse(project: Project) -> None:
    project.write(
        "conftest.py",
        """\
        def pytest_runtest_setup(item):
            with open(item.config.rootpath / "order", "a") as file:
                print(item.name, file=file)
        """,
    )
    project.write(
        "tests/test_it.py",
        """\
        import pytest

        @pytest.mark.profile
        @pytest.mark.parametrize("name", ["a b", "x[1]", "日本", "p::q", "r@s", "t/u", "-k"], ids=str)
        def test_it(name): pass

        def test_plain(): pass

        @pytest.mark.profile
        def test_fails(): assert False
        """,
    )
    project.write("tests/test_more.py", "import pytest\n@pytest.mark.profile\ndef test_more(): pass\n")
    (project.folder / "other").mkdir()
    session = project.pytest(
        "--opprof-save=main", "../tests/test_it.py", "../tests/test_more.py", cwd="other"
    )
    assert not any("not certified" in line for line in session.told)
    assert {test.processes for test in stored(project).tests} == {2}
    order = (project.folder / "order").read_text().splitlines()
    first, second = order[:10], order[10:]
    assert second == [name for name in reversed(first) if name not in {"test_plain", "test_fails"}]
    assert session.stdout.count("test session starts") == 1


@pytest.mark.slow
@pytest.mark.parametrize("other_ini", [False, True], ids=["no ini file", "one that does not count"])
def test_node_ids_are_the_same_without_an_ini_file(project: Project, *, other_ini: bool) -> None:
    (project.folder / "pytest.ini").unlink()
    project.write("tests/deep/test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    if other_ini:
        project.write("tests/deep/pytest.ini", INI)
    session = project.pytest("-p", "opprof", "--opprof-save=main", ".")
    assert not any("not certified" in line for line in session.told)
    assert [(test.node_id, test.processes) for test in stored(project).tests] == [
        ("tests/deep/test_it.py::test_it", 2)
    ]


ORPHAN = """\
    import os, signal, threading
    import pytest

    @pytest.mark.profile
    def test_it():
        if os.environ["FIRST"] == str(os.getpid()):
            return
        files = {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}
        alive = os.open("alive", os.O_WRONLY)
        for file in files:
            if "/opprof-certify-" in file and file.endswith("/lock"):
                os.write(alive, b"holds the lock")
        os.kill(os.getppid(), signal.SIGKILL)
        threading.Event().wait(60)
        os.write(alive, b" and survived")
"""


def test_a_fresh_process_ends_with_a_killed_session_and_holds_its_folder_until_then(project: Project) -> None:
    project.write("conftest.py", "import os\nos.environ.setdefault('FIRST', str(os.getpid()))\n")
    project.write("test_it.py", ORPHAN)
    os.mkfifo(project.folder / "alive")
    process = project.start("--opprof-save=main")
    assert (project.folder / "alive").read_bytes() == b"holds the lock"
    assert project.ended(process).exit_code == -signal.SIGKILL


SECOND = """\
    import pytest

    def pytest_configure(config):
        marker = config.rootpath / "seen"
        if marker.exists():
            {what}
        marker.touch()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("raise pytest.UsageError('not twice')", "exit code 4: ERROR: not twice"),
        ("import os; os._exit(3)", "exit code 3: it printed nothing"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9: it printed nothing"),
        (
            "import faulthandler, os; faulthandler.enable(); os.abort()",
            "exit code -6: Fatal Python error: Aborted",
        ),
        (
            "import sys, types; print('hint', file=sys.stderr); "
            "config.pluginmanager.register(types.SimpleNamespace(pytest_collection=lambda: 1 / 0))",
            "exit code 3: INTERNALERROR> ZeroDivisionError: division by zero",
        ),
    ],
    ids=["refused", "left", "killed", "crashed", "internal error"],
)
def test_failed_second_process_is_reported_and_run_saved(project: Project, what: str, why: str) -> None:
    project.write("conftest.py", SECOND.format(what=what))
    project.write("test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == 0
    sentence = f"not certified in 2 processes: process 2 ended with {why}"
    assert f"opprof: {sentence}" in session.told
    run = stored(project)
    assert run.notes == (sentence,)
    assert [test.processes for test in run.tests] == [1]


def test_interrupted_certification_saves_nothing_and_lets_pytest_end(project: Project) -> None:
    what = "import os, signal; os.kill(os.getppid(), signal.SIGINT); signal.pause()"
    project.write("conftest.py", SECOND.format(what=what))
    project.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.profile
        def test_it(): pass

        def test_plain(): assert False
        """,
    )
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == pytest.ExitCode.INTERRUPTED
    assert "opprof: nothing was saved: the certification was interrupted" in session.told
    assert project.stored() == []
    assert session.outcomes == {"test_it": "passed", "test_plain": "failure"}
    session.lines.fnmatch_lines(["*= FAILURES =*", "!* opprof was interrupted !*", "*1 failed, 1 passed*"])
    assert "Traceback" not in session.stdout + session.stderr


def test_no_second_process_without_measured_tests(project: Project) -> None:
    project.write("conftest.py", SECOND.format(what="raise pytest.UsageError('not twice')"))
    project.write("test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pytest.skip('no')\n")
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == 0
    assert "opprof: nothing was saved" in session.told
    assert not any("not certified" in line for line in session.told)


@pytest.mark.parametrize("where", ["command line", "ini file"])
def test_pytest_split_does_not_split_again(project: Project, where: str) -> None:
    pytest.importorskip("pytest_split")
    options = ["--splits=2", "--group", "1", "--store-durations"]
    if where == "ini file":
        project.write(
            "pytest.ini", INI.replace("-p opprof", f"-p opprof -p pytest-split {' '.join(options)}")
        )
        options = []
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.profile
        @pytest.mark.parametrize("number", range(8))
        def test_it(number):
            with record_function("work"):
                pass
        """,
    )
    session = project.pytest("--opprof-save=main", *options, plugins=("pytest-split",) if options else ())
    assert session.exit_code == 0
    assert not any("not certified" in line for line in session.told)
    assert [test.processes for test in stored(project).tests] == [2] * 4


@pytest.mark.slow
def test_a_save_shows_how_many_tests_it_has_certified(project: Project) -> None:
    project.write("pytest.ini", INI)
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.profile(warmup=0, active=1)
        def test_second():
            with record_function("work"):
                pass

        @pytest.mark.profile(warmup=0, active=1)
        def test_first():
            with record_function("work"):
                pass
        """,
    )
    shown = project.on_a_terminal("-m", "pytest", "--opprof-save=main")
    text = "certifying 2 tests in a fresh process (2 of 2)"
    assert f"opprof: [{'.' * 22}] {text}" in shown
    assert f"\ropprof: {text}" in shown
    assert shown.index(f"\ropprof: {text}") > shown.rindex(f"] {text}")
    assert stored(project).tests[0].processes == 2
    narrow = "import os, pytest; os.environ['COLUMNS'] = '60'; pytest.main(['--opprof-save=main'])"
    lines = re.split(r"[\r\n]+", project.on_a_terminal("-c", narrow))
    assert {len(line) for line in lines if line.startswith("opprof: [")} == {59}
