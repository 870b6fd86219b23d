"""Answers and refusals of `opprof mcp`, asked by a coding agent about a real project."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from e2e.agent import WATCHING, Agent, agent_in, measure
from e2e.conftest import MakeProject
from e2e.project import Project, environment
from support.documents.compared import slower
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.timing.document import write_time_comparison
from pytest_opprof.results.files import write_run
from pytest_opprof.results.schema import Contract


@pytest.fixture(scope="module")
def project(make_project: MakeProject) -> Project:
    project = make_project("mcp")
    measure(project)
    write_time_comparison(project.folder / "ab.json", slower())
    write_run(project.folder / "limited.json", simple_run(simple_test({"a::b": 1}, limits={"ops.count": 0})))
    project.write("corrupt.json", '{"kind": "opprof-run", "tests": [')
    (project.folder / "folder").mkdir()
    (project.folder / "link.json").symlink_to("../project-reports/1.json")
    return project


@pytest.fixture(scope="module")
def agent(project: Project) -> Iterator[Agent]:
    with agent_in(project.folder) as agent:
        yield agent


@pytest.fixture
def copied(project: Project, tmp_path: Path) -> Project:
    """A copy of the project, to be changed."""
    copied = Project(tmp_path / "project")
    shutil.copytree(project.folder, copied.folder, symlinks=True, dirs_exist_ok=True)
    return copied


def part_of(contract: Contract, name: str) -> Any:
    """A validator of one part of a JSON file's schema."""
    folder = Path(__file__).parents[2] / "schemas"
    schemas = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    registry = jsonschema_rs.Registry([(s["$id"], s) for s in schemas])
    (whole,) = (s["$id"] for s in schemas if f":{contract}:" in s["$id"])
    return jsonschema_rs.Draft202012Validator({"$ref": f"{whole}#/$defs/{name}"}, registry=registry)


def opprof(project: Project, *arguments: str) -> Any:
    """The JSON that a command prints."""
    return json.loads(project.python("-m", "pytest_opprof", *arguments, "--json").stdout)


def test_each_tool_is_read_only_and_documents_its_arguments(agent: Agent) -> None:
    tools = {tool.name: tool for tool in agent.tools()}
    assert set(tools) == {"list_runs", "show_run", "compare_runs", "show_history"}
    for tool in tools.values():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.destructive_hint is False
        assert tool.description
        assert not re.search(r"\n ", tool.description), "the indent of a docstring"
        assert tool.output_schema is not None
        for argument in tool.input_schema["properties"].values():
            told = [argument, *argument.get("anyOf", ())]
            assert any("description" in each for each in told)
            assert any("type" in each for each in told)
    assert tools["show_run"].input_schema["required"] == ["run"]
    assert "count" in tools["show_run"].input_schema["properties"]["sort_by"]["enum"]


def test_the_last_regression_is_explained(agent: Agent) -> None:
    answer = agent.ask("compare_runs")
    assert answer["headline"] == "REGRESSED: 2 of 3 tests"
    assert answer["totals"] == "2 regressed, 1 passed · nothing dropped"
    (cause,) = answer["causes"]
    assert cause["title"].endswith(": work +1 to +2 a step")
    assert cause["tests"] == ["test_it.py::test_alone", "test_it.py::test_many"]
    assert (cause["if_intended"], answer["causes_left_out"]) == ('opprof accept --cause 1 --reason "..."', 0)
    assert {test["node_id"]: test["verdict"] for test in answer["tests"]} == dict.fromkeys(
        cause["tests"], "regressed"
    )
    (rise,) = (change for change in answer["tests"][0]["changes"] if change["op"] == "work")
    assert (rise["base"], rise["head"], rise["verdict"]) == (3, 4, "regressed")
    part = part_of(Contract.COMPARISON, "change")
    for change in answer["tests"][0]["changes"]:
        part.validate(change)


def test_a_test_that_passed_is_shown_if_it_is_named(agent: Agent) -> None:
    (test,) = agent.ask("compare_runs", test="test_other")["tests"]
    assert (test["node_id"], test["verdict"]) == ("test_it.py::test_other", "pass")


@pytest.mark.parametrize(
    "arguments", [{}, {"base": "main", "head": "run.json"}, {"comparison": ".opprof/.state/last.json"}]
)
def test_the_command_of_a_cause_accepts_it(agent: Agent, copied: Project, arguments: dict[str, str]) -> None:
    (cause,) = agent.ask("compare_runs", **arguments)["causes"]
    command = cause["if_intended"].replace('"..."', '"it is meant"')
    typed = command.replace("opprof ", f"{shlex.quote(sys.executable)} -m pytest_opprof ")
    done = copied.python("-c", f"import subprocess, sys; sys.exit(subprocess.call({typed!r}, shell=True))")
    assert done.returncode == 0
    assert "Accepted for 2 tests until the next baseline" in done.stdout


def test_an_earlier_comparison_says_that_it_is_old(copied: Project) -> None:
    copied.commit()
    copied.commit()
    with agent_in(copied.folder) as agent:
        (note,) = agent.ask("compare_runs")["notes"]
    assert re.match(r"the last comparison is of \w{7}\+dirty, and \w{7} is checked out. Run the tests", note)


def test_an_ab_comes_with_its_times(agent: Agent) -> None:
    answer = agent.ask("compare_runs", comparison="ab.json", changes=1)
    times = [test["times"] for test in answer["tests"]]
    assert times
    assert any(each["ops"] for each in times)
    for each in times:
        part_of(Contract.COMPARISON, "test_times").validate(each)
        assert len(each["ops"]) <= 1


def test_tables_are_parts_of_the_documents(agent: Agent, project: Project) -> None:
    document = json.loads((project.folder / "run.json").read_text("utf-8"))
    answer = agent.ask("show_run", run="run.json")
    assert {test["node_id"] for test in answer["tests"]} == {test["node_id"] for test in document["tests"]}
    assert answer["run"]["run_id"] == document["run_id"]
    listed = {test["node_id"]: test for test in answer["tests"]}
    for test in document["tests"]:
        brief = listed[test["node_id"]]
        assert brief["totals"] == test["totals"]
        assert brief["ops"] == len(test["ops"])
        shown = agent.ask("show_run", run="run.json", test=test["node_id"], sort_by="count")["test"]
        part_of(Contract.RUN, "test").validate(shown)
        ops = sorted(test["ops"], key=lambda op: (-op["metrics"]["count"], op["name"]))
        assert shown == test | {"ops": ops, "tree": []}


def test_lists_match_the_commands(agent: Agent, project: Project) -> None:
    answer = agent.ask("list_runs")
    assert (answer["store"], answer["more"]) == ("dir:.opprof", "")
    assert answer["baselines"] == opprof(project, "baseline", "list")
    assert agent.ask("list_runs", name="main")["runs"] == opprof(project, "baseline", "list", "main")
    shown = agent.ask("show_history", test="alone", metric="work.count")
    (trend,) = shown["trends"]
    (expected,) = opprof(project, "history", "test_alone", "work.count")
    assert trend == expected | {"points": expected["points"][::-1], "changes": 1}
    assert [point["value"] for point in trend["points"]] == [3, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments", "listed"),
    [
        ("list_runs", {"name": "main"}, ("runs",)),
        ("show_run", {"run": "main"}, ("tests",)),
        ("show_run", {"run": "main", "test": "alone"}, ("test", "ops")),
        ("compare_runs", {}, ("tests",)),
        ("show_history", {"test": "alone"}, ("trends", 0, "points")),
        ("show_history", {"test": "alone"}, ("trends", 1, "points")),
    ],
)
def test_pages_are_the_whole_list(
    agent: Agent, tool: str, arguments: dict[str, Any], listed: tuple[Any, ...]
) -> None:
    def rows(answer: Any) -> list[Any]:
        for key in listed:
            answer = answer[key]
        assert isinstance(answer, list)
        return answer

    whole = rows(agent.ask(tool, **arguments))
    assert len(whole) >= 2
    found: list[Any] = []
    for offset in range(len(whole)):
        answer = agent.ask(tool, **arguments, offset=offset, limit=1)
        found += rows(answer)
        rest = len(whole) - offset - 1
        assert answer["more"].endswith(
            f" left out: {rest}. Ask again with offset={offset + 1}" if rest else ""
        )
        assert bool(answer["more"]) == bool(rest)
    assert found == whole
    assert rows(agent.ask(tool, **arguments, offset=len(whole))) == []


def test_changes_that_are_left_out_are_counted(agent: Agent) -> None:
    (test, *_) = agent.ask("compare_runs", changes=1)["tests"]
    asked = re.fullmatch(r"changes left out: (\d+). Ask with test and changes=(\d+)", test["more"])
    assert asked
    assert len(test["changes"]) == 1
    (whole,) = agent.ask("compare_runs", test=test["node_id"], changes=int(asked[2]))["tests"]
    assert len(whole["changes"]) == int(asked[2]) == int(asked[1]) + 1
    assert "more" not in whole


def test_broken_limit_asks_to_raise_it(agent: Agent) -> None:
    answer = agent.ask("compare_runs", head="limited.json")
    assert answer["base"] is None
    (cause,) = answer["causes"]
    assert cause["if_intended"] == "raise the limit in the test's marker"
    ((limit,),) = (test["limits"] for test in answer["tests"])
    part_of(Contract.COMPARISON, "limit").validate(limit)
    assert (limit["path"], limit["verdict"]) == ("ops.count", "regressed")


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("list_runs", {"name": "absent"}, r"no baseline 'absent' in dir:.opprof \(it has: main\)"),
    ("list_runs", {"limit": 0}, "limit: Input should be greater than or equal to 1"),
    ("list_runs", {"offset": -1}, "offset: Input should be greater than or equal to 0"),
    (
        "list_runs",
        {"baseline": "main"},
        r"list_runs has no argument 'baseline' \(it has: name, offset, limit\)",
    ),
    ("show_run", {}, "run: Field required"),
    ("show_run", {"run": ["main"]}, "run: Input should be a valid string"),
    ("show_run", {"run": "absent"}, "absent: there is no such file, and no baseline 'absent' in"),
    ("show_run", {"run": "x" * 5_000}, "there is no such file"),
    ("show_run", {"run": "\0"}, "is outside the project"),
    ("show_run", {"run": "a\x1b[31m"}, r"a\\x1b\[31m: there is no such file"),
    ("show_run", {"run": "corrupt.json"}, "corrupt.json: .* The file was not used"),
    ("show_run", {"run": "pytest.ini"}, "pytest.ini: .* The file was not used"),
    ("show_run", {"run": "folder"}, "folder: it is a folder, and no baseline 'folder' in"),
    ("show_run", {"run": "/etc/passwd"}, "'/etc/passwd' is outside the project /.*/project: only its own"),
    ("show_run", {"run": "../project-reports/1.json"}, "is outside the project"),
    ("show_run", {"run": "link.json"}, "'link.json' is outside the project"),
    ("show_run", {"run": "run.json", "test": "test_"}, "'test_' matches .*: give a longer part"),
    ("show_run", {"run": "run.json", "test": "none"}, "run.json has no test 'none'"),
    ("show_run", {"run": "main", "test": "alone", "sort_by": "cuont"}, "did you mean 'count'"),
    ("compare_runs", {"base": "main"}, "compare_runs takes one of these"),
    ("compare_runs", {"head": "main", "comparison": "ab.json"}, "compare_runs takes one of these"),
    ("compare_runs", {"base": "/etc/passwd", "head": "main"}, "is outside the project"),
    ("compare_runs", {"base": "main", "head": "../x"}, "is outside the project"),
    ("compare_runs", {"comparison": "../x"}, "is outside the project"),
    ("compare_runs", {"comparison": "absent.json"}, "absent.json: "),
    ("compare_runs", {"comparison": "run.json"}, "this is a run, but a comparison is needed"),
    ("compare_runs", {"test": "absent"}, r"the comparison has no test like 'absent' \(3 tests\)"),
    ("show_history", {"test": "absent"}, "the history has no test 'absent'"),
    ("show_history", {"test": "alone", "metric": "ops.cuont"}, "did you mean 'ops.count'"),
    ("show_history", {"test": "alone", "name": "absent"}, "has no run that was saved as 'absent'"),
    ("remove_run", {"name": "main"}, "Unknown tool: remove_run"),
]


@pytest.mark.parametrize(("tool", "arguments", "told"), BAD)
def test_invalid_questions_are_one_sentence(
    agent: Agent, tool: str, arguments: dict[str, Any], told: str
) -> None:
    assert re.search(told, agent.refused(tool, arguments))
    assert agent.log.read_text("utf-8") == ""
    assert not agent.call("list_runs", {}).is_error, "and the server goes on"


def files_of(folder: Path) -> dict[Path, tuple[object, ...]]:
    """All files of a folder with their modification times."""

    def state(path: Path) -> tuple[object, ...]:
        about = path.lstat()
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        return about.st_mode, about.st_mtime_ns, about.st_ino, data

    return {path: state(path) for path in (folder, *folder.rglob("*"))}


@pytest.fixture(params=["as it is", "with baselines in git"])
def watched(request: pytest.FixtureRequest, copied: Project) -> Iterator[Project]:
    """A project whose files must stay unchanged."""
    if request.param == "with baselines in git":
        copied.python("-m", "pytest_opprof", "baseline", "push", "--to=git:")
        ini = copied.folder / "pytest.ini"
        ini.write_text(f"{ini.read_text()}opprof_store = git:\n")
    before = files_of(copied.folder)
    yield copied
    assert files_of(copied.folder) == before


GIT_READS = {
    *("cat-file", "diff", "for-each-ref", "hash-object", "ls-files", "ls-tree"),
    *("merge-base", "remote", "rev-list", "rev-parse", "status"),
}
NO_REFRESH = "diff.autoRefreshIndex=false"  # so that not even the index is written


def without_settings(command: list[str]) -> list[str]:
    """A command of git without the settings before its name."""
    git, *rest = command
    while rest[0] == "-c":
        assert rest[1] in {NO_REFRESH, "log.showSignature=false"}
        rest = rest[2:]
    return [git, *rest]


@pytest.mark.slow
def test_nothing_is_written(watched: Project) -> None:
    with agent_in(watched.folder, before=WATCHING) as agent:
        for name in ("run.json", "main"):
            agent.ask("show_run", run=name)
            agent.ask("show_run", run=name, test="alone")
        agent.ask("list_runs")
        agent.ask("list_runs", name="main")
        agent.ask("compare_runs")
        agent.ask("compare_runs", base="main", head="run.json")
        agent.ask("compare_runs", comparison="ab.json")
        agent.ask("show_history", test="alone")
        for tool, arguments, _ in BAD:
            agent.call(tool, arguments)
    done = list(map(json.loads, agent.log.read_text("utf-8").splitlines()))
    commands = [arguments[1] for event, *arguments in done if event == "subprocess.Popen"]
    assert {program for program, *_ in commands} == {"git"}
    assert all(NO_REFRESH in command for command in commands if "diff" in command)
    commands = [without_settings(command) for command in commands]
    assert {command[1] for command in commands} <= GIT_READS | {"show-ref", "symbolic-ref"}
    assert all(command[2] == "--stdin-paths" for command in commands if command[1] == "hash-object")
    assert all(command[2] == "--quiet" for command in commands if command[1] == "symbolic-ref")
    others = [one for one in done if one[0] != "subprocess.Popen"]
    assert [one for one in others if one != ["sqlite3.connect", ":memory:"]] == []


@pytest.mark.slow
def test_folder_and_store_can_be_named(agent: Agent, copied: Project) -> None:
    (copied.folder / ".opprof").rename(copied.folder / "kept")
    elsewhere = copied.folder / "folder"
    with agent_in(elsewhere, str(copied.folder), "--store=dir:kept") as other:
        assert other.ask("list_runs")["store"] == "dir:kept"
        assert other.ask("show_run", run="main") == agent.ask("show_run", run="main")
        (cause,) = other.ask("compare_runs", base="main", head="run.json")["causes"]
        command = "opprof compare main run.json --store dir:kept -o compared.json; opprof accept"
        assert cause["if_intended"].startswith(command)
    with agent_in(elsewhere, str(copied.folder)) as other:
        assert other.ask("list_runs")["baselines"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "code", "told"),
    [
        (
            "sys.modules['mcp'] = None; sys.exit(main(['mcp']))",
            2,
            r"opprof: opprof mcp needs the package mcp, 2.3 or newer: pip install 'pytest-opprof\[mcp\]' \(.*\)",
        ),
        ("sys.exit(main(['mcp', 'absent']))", 2, r"opprof: absent is not a folder that can be opened \(.*\)"),
        (
            "sys.exit(main(['mcp', '--store=dir:']))",
            2,
            "opprof: --opprof-store=dir:: the path is missing: .*",
        ),
    ],
    ids=["no SDK", "no folder", "no store"],
)
def test_a_server_that_cannot_start_says_why(project: Project, program: str, code: int, told: str) -> None:
    done = project.python("-c", f"import sys\nfrom pytest_opprof.cli.main import main\n{program}")
    assert (done.returncode, done.stdout) == (code, "")
    assert re.fullmatch(f"{told}\n", done.stderr)


def test_ctrl_c_ends_a_server(project: Project) -> None:
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    command = [sys.executable, "-m", "pytest_opprof", "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=project.folder, env=environment(), stdin=pipe, stdout=pipe) as server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(json.dumps(hello).encode() + b"\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "pytest-opprof"
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == -signal.SIGINT
        finally:
            server.kill()


def test_a_server_ends_with_its_client(project: Project) -> None:
    done = project.python(
        "-c", "import sys\nfrom pytest_opprof.cli.main import main\nsys.exit(main(['mcp']))"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
