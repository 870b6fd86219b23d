"""Fresh processes run the given tests as the session ran them, and leave its files alone."""

import subprocess
import sys

import pytest
from e2e.project import INI, Project, environment

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Run


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """This test's own project."""
    return Project(tmp_path_factory.mktemp("fresh") / "project")


def stored(project: Project) -> Run:
    return read_run(project.stored()[-1])


SUITE = """\
    import pytest
    from pytest_opprof import record_function

    MORE = 0

    @pytest.mark.profile
    @pytest.mark.parametrize("name", ["first", "second", "third"])
    def test_it(name):
        for _ in range(1 + MORE * (name == "second")):
            with record_function(name):
                pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["ini file", "environment", "file"])
def test_second_look_is_at_the_failing_test_wherever_paths_are_given(project: Project, where: str) -> None:
    arguments, env = [], {}
    if where == "ini file":
        project.replace("pytest.ini", "addopts = ", "addopts = -ra tests ")
    elif where == "environment":
        env = {"PYTEST_ADDOPTS": "-ra tests"}
    else:
        if pytest.version_tuple < (8, 2):
            pytest.skip("this pytest does not read arguments from files")
        project.write("ci-tests.txt", "-ra\ntests\n")
        arguments = ["@ci-tests.txt"]
    project.write(
        "conftest.py",
        """\
        import os

        def pytest_runtest_setup(item):
            with open("order", "a") as file:
                print(os.getpid(), item.name, file=file)
        """,
    )
    project.write("tests/test_it.py", SUITE)
    assert project.pytest("--opprof-save=main", *arguments, env=env).exit_code == 0
    assert {test.processes for test in stored(project).tests} == {2}
    project.replace("tests/test_it.py", "MORE = 0", "MORE = 1")
    compared = project.pytest("--opprof-baseline=main", *arguments, env=env)
    assert set(compared.failures) == {"test_it[second]"}
    assert compared.failures["test_it[second]"].startswith("REGRESSED: ")
    told = [line.split() for line in (project.folder / "order").read_text().splitlines()]
    by_process: dict[str, list[str]] = {}
    for process, name in told:
        by_process.setdefault(process, []).append(name.removeprefix("test_it"))
    given = ["[first]", "[second]", "[third]"]
    assert list(by_process.values()) == [given, given[::-1], given, ["[second]"]]


@pytest.mark.slow
def test_more_node_ids_than_a_command_line_takes_are_certified(project: Project) -> None:
    # An eighth of the usual limit of a command line: an eighth of the tests.
    project.write(
        "conftest.py",
        """\
        import resource

        limit = (1 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1])
        resource.setrlimit(resource.RLIMIT_STACK, limit)
        """,
    )
    project.write("pytest.ini", INI + "opprof_instructions = off\n")
    project.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.profile(warmup=0, active=1)
        @pytest.mark.parametrize("number", range(100), ids=lambda number: f"{number}-{'x' * 3_000}")
        def test_it(number): pass
        """,
    )
    session = project.pytest("--opprof-save=main")
    assert not any("not certified" in line for line in session.told)
    assert {test.processes for test in stored(project).tests} == {2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("--rootdir", ".", "."), (".", "--rootdir", "."), ("-k", "tests", "tests")],
    ids=["value before", "value after", "expression"],
)
def test_an_options_value_may_equal_a_path(project: Project, arguments: tuple[str, ...]) -> None:
    project.write("tests/test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    session = project.pytest("--opprof-save=main", *arguments)
    assert not any("not certified" in line for line in session.told)
    assert [test.processes for test in stored(project).tests] == [2]


LASTING = """\
    import logging
    import pytest
    from pytest_opprof import record_function

    MORE = 0

    @pytest.fixture(scope="session")
    def data(tmp_path_factory):
        path = tmp_path_factory.mktemp("data") / "rows"
        path.touch()
        return path

    def test_before(data):
        logging.getLogger().warning("logged before")

    @pytest.mark.profile
    def test_it(tmp_path):
        for _ in range(1 + MORE):
            with record_function("work"):
                pass

    def test_after(data):
        assert data.exists()
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["ini file", "environment"])
def test_fresh_processes_leave_the_sessions_files_alone(project: Project, where: str) -> None:
    options, ini = "-p opprof --basetemp=.tmp", "log_file = log.txt\n"
    if where == "environment":
        options, ini = f"{options} --log-file=log.txt", ""
    env = {"PYTEST_ADDOPTS": options} if where == "environment" else {}
    project.write("pytest.ini", "[pytest]\n" + ("" if env else f"addopts = {options}\n") + ini)
    project.write("test_it.py", LASTING)
    log = project.folder / "log.txt"
    saved = project.python("-m", "pytest", "--opprof-save=main", env=env)
    assert saved.returncode == 0
    assert "not certified" not in saved.stdout
    assert "logged before" in log.read_text()
    assert (project.folder / ".tmp/data0/rows").exists()
    project.replace("test_it.py", "MORE = 0", "MORE = 1")
    compared = project.python("-m", "pytest", "-rA", "--opprof-baseline=main", env=env)
    assert "REGRESSED" in compared.stdout
    assert "PASSED test_it.py::test_after" in compared.stdout
    assert "logged before" in log.read_text()


def test_reports_in_the_ini_file_are_the_sessions_own(project: Project) -> None:
    project.write(
        "conftest.py",
        """\
        def pytest_addoption(parser):
            parser.addoption("--report-log")
            parser.addoption("--html")
            parser.addoption("--json-report", action="store_true")

        def pytest_configure(config):
            asked = [config.getoption(name) for name in ("report_log", "html", "json_report", "xmlpath")]
            with open("asked", "a") as file:
                print(*asked, file=file)
        """,
    )
    reports = "--report-log=a.log --html a.html --json-report --junitxml a.xml"
    project.replace("pytest.ini", "addopts = ", f"addopts = {reports} ")
    project.write("test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    assert project.python("-m", "pytest", "--opprof-save=main").returncode == 0
    asked = (project.folder / "asked").read_text().splitlines()
    assert asked == ["a.log a.html True a.xml", "None None False None"]
    assert stored(project).tests[0].processes == 2


@pytest.mark.slow
def test_fresh_process_imports_what_the_pytest_script_imports(project: Project) -> None:
    project.write("pkg.py", "WHERE = 'folder'\n")
    site = project.write("site/pkg.py", "WHERE = 'installed'\n").parent
    project.write(
        "tests/test_it.py",
        """\
        import pkg
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.profile
        def test_it():
            with record_function(pkg.WHERE):
                pass
        """,
    )
    # as installers write it for pytest's entry point
    project.write("bin/pytest", "import sys\nfrom pytest import console_main\nsys.exit(console_main())\n")
    for command, where in (["bin/pytest"], "installed"), (["-m", "pytest"], "folder"):
        done = subprocess.run(
            [sys.executable, *command, "--opprof-save=main"],
            cwd=project.folder,
            env=environment({"PYTHONPATH": str(site)}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        (test,) = stored(project).tests
        assert (test.processes, test.unstable) == (2, ())
        assert {row.name for row in test.ops} & {"installed", "folder"} == {where}


@pytest.mark.slow
def test_conftest_above_the_project_is_left_alone(project: Project) -> None:
    (project.folder / "pytest.ini").unlink()
    project.write("../conftest.py", "raise AssertionError('not of this project')\n")
    project.write("test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    session = project.pytest("-p", "opprof", "--rootdir=.", "--opprof-save=main")
    assert not any("not certified" in line for line in session.told)
    assert [test.processes for test in stored(project).tests] == [2]
