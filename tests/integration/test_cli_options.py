"""Each argument of each command of ``opprof`` makes a difference: one without a proof here fails."""

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.cli.main import main, whole_parser
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import write_comparison
from pytest_opprof.compare.last import keep_last
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.history.store import history_of, remember
from pytest_opprof.results.files import write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit

# What is typed without the argument and with it: what is told or written must differ.
Typed = tuple[str, str]
PROOFS: dict[str, Typed] = {
    "show run": ("show base.json", "show head.json"),
    "show --test": ("show two.json", "show two.json --test=test_y"),
    "show --sort": ("show base.json --sort=name", "show base.json --sort=count"),
    "show --rows": ("show base.json", "show base.json --rows=1"),
    "show --columns": ("show base.json", "show base.json --columns=Self&CPU"),
    "show --store": ("show main", "show main --store=dir:other"),
    "compare base": ("compare base.json base.json", "compare head.json base.json"),
    "compare head": ("compare base.json base.json", "compare base.json head.json"),
    "compare --output": ("compare base.json head.json", "compare base.json head.json -o written.json"),
    "compare --fail-on": ("compare base.json head.json", "compare base.json head.json --fail-on=none"),
    "compare --gate": ("compare base.json head.json", "compare base.json head.json --gate=ops.count=off"),
    "compare --rename": (
        "compare base.json two.json",
        "compare base.json two.json --rename=tests/test_a.py::test_x->tests/test_a.py::test_y",
    ),
    "compare --store": ("compare main head.json", "compare main head.json --store=dir:other"),
    "compare --verbose": ("compare base.json base.json", "compare base.json base.json -v"),
    "compare --quiet": ("compare base.json head.json", "compare base.json head.json -q"),
    "comment comparison": ("comment other.json --dry-run", "comment .opprof/.state/last.json --dry-run"),
    "comment --base": (
        "comment --dry-run --head=head.json",
        "comment --dry-run --base=base.json --head=head.json",
    ),
    "comment --head": (
        "comment --dry-run --base=base.json --head=base.json",
        "comment --dry-run --base=base.json --head=head.json",
    ),
    "comment --gate": (
        "comment --dry-run --base=base.json --head=head.json",
        "comment --dry-run --base=base.json --head=head.json --gate=ops.count=off",
    ),
    "comment --store": ("comment --dry-run --head=main", "comment --dry-run --head=main --store=dir:other"),
    "comment --configuration": (
        "comment other.json --dry-run",
        "comment other.json --dry-run --configuration=cuda",
    ),
    "report comparison": ("report other.json", "report .opprof/.state/last.json"),
    "report --base": ("report --head=head.json", "report --base=base.json --head=head.json"),
    "report --head": (
        "report --base=base.json --head=base.json",
        "report --base=base.json --head=head.json",
    ),
    "report --gate": (
        "report --base=base.json --head=head.json",
        "report --base=base.json --head=head.json --gate=ops.count=off",
    ),
    "report --format": ("report other.json", "report other.json --format=annotations"),
    "report --output": ("report other.json", "report other.json -o written.md"),
    "report --history": ("report other.json --format=html", "report other.json --format=html --history"),
    "report --store": ("report --head=main", "report --head=main --store=dir:other"),
    "accept test": ("accept t.py::test_x --reason=so", "accept t.py::test_y --reason=so"),
    "accept metric": ("accept t.py::test_x --reason=so", "accept t.py::test_x ops.count --reason=so"),
    "accept --reason": ("accept t.py::test_x --reason=so", "accept t.py::test_x --reason=&"),
    "accept --comparison": (
        "accept t.py::test_x --reason=so",
        "accept t.py::test_x --reason=so --comparison=other.json",
    ),
    "baseline list name": ("baseline list", "baseline list main"),
    "baseline list --json": ("baseline list", "baseline list --json"),
    "baseline list --store": ("baseline list", "baseline list --store=dir:other"),
    "baseline show run": ("baseline show main", "baseline show rich"),
    "baseline show --test": ("baseline show rich", "baseline show rich --test=test_y"),
    "baseline show --sort": ("baseline show rich --sort=name", "baseline show rich --sort=count"),
    "baseline show --rows": ("baseline show rich", "baseline show rich --rows=1"),
    "baseline show --columns": ("baseline show rich", "baseline show rich --columns=Self&CPU"),
    "baseline show --store": ("baseline show main", "baseline show main --store=dir:other"),
    "baseline save name": ("baseline save main base.json", "baseline save topic base.json"),
    "baseline save run": ("baseline save main base.json", "baseline save main two.json"),
    "baseline save --whole": ("baseline save main two.json", "baseline save main two.json --whole"),
    "baseline save --store": (
        "baseline save main base.json",
        "baseline save main base.json --store=dir:third",
    ),
    "baseline remove run": ("baseline remove nothing", "baseline remove main"),
    "baseline remove --store": ("baseline remove main", "baseline remove main --store=dir:other"),
    "baseline prune names": ("baseline prune main", "baseline prune nothing"),
    "baseline prune --keep": ("baseline prune", "baseline prune --keep=1"),
    "baseline prune --store": ("baseline prune --keep=1", "baseline prune --keep=1 --store=dir:other"),
    "baseline push names": ("baseline push --to=dir:third main", "baseline push --to=dir:third rich"),
    "baseline push --to": ("baseline push --to=dir:third", "baseline push --to=dir:fourth"),
    "baseline push --remote": (
        "baseline push --store=git:repository",
        "baseline push --store=git:repository --remote=../bare",
    ),
    "baseline push --store": (
        "baseline push --to=dir:third",
        "baseline push --to=dir:third --store=dir:other",
    ),
    "baseline pull names": ("baseline pull --from=dir:other main", "baseline pull --from=dir:other nothing"),
    "baseline pull --from": ("baseline pull --from=dir:other", "baseline pull --from=dir:none"),
    "baseline pull --remote": (
        "baseline pull --store=git:repository",
        "baseline pull --store=git:repository --remote=../bare",
    ),
    "baseline pull --store": (
        "baseline pull --from=dir:other",
        "baseline pull --from=dir:other --store=dir:third",
    ),
    "validate files": ("validate base.json", "validate base.json head.json"),
    "init folder": ("init one", "init another"),
    "init --try": ("init one", "init one --try -p no:randomly"),
    "init --store": ("init one", "init one --store=dir:elsewhere"),
    "doctor --store": ("doctor", "doctor --store=dir:other"),
    "env sources": ("env", "env nvtx"),
    "import-benchmarks file": (
        "import-benchmarks stored.json -o run.json",
        "import-benchmarks slower.json -o run.json",
    ),
    "import-benchmarks --output": (
        "import-benchmarks stored.json -o run.json",
        "import-benchmarks stored.json -o runs.json",
    ),
    "history test": ("history test_x", "history test_y"),
    "history metric": ("history test_x", "history test_x aten::mul.count"),
    "history --name": ("history test_x", "history test_x --name=release"),
    "history --last": ("history test_x", "history test_x --last=1"),
    "history --json": ("history test_x", "history test_x --json"),
    "history --csv": ("history test_x", "history test_x --csv"),
    "history --import": ("history test_x", "history test_x --import two.json"),
    "history --tables": (
        "history test_x --import two.json",
        "history test_x --import two.json --tables=memory://proof",
    ),
    "history --where": (
        "history ops.count --import two.json --tables=memory://proof",
        "history ops.count --import two.json --tables=memory://proof --where=dirty",
    ),
    "history --repo": (
        "history --import two.json --tables=memory://proof",
        "history --import two.json --tables=memory://proof --repo=encoder",
    ),
    "history --compact": ("history test_x", "history test_x --compact"),
    "history --store": ("history test_x", "history test_x --store=dir:other"),
    "merge runs": ("merge base.json -o joined.json", "merge base.json two.json -o joined.json"),
    "merge --output": ("merge base.json -o joined.json", "merge base.json -o joined2.json"),
    "merge --expect": ("merge base.json -o joined.json", "merge base.json -o joined.json --expect=2"),
    "merge --collected": (
        "merge base.json -o joined.json",
        "merge base.json -o joined.json --collected=collected.txt",
    ),
    "trace show file": ("trace show before.json", "trace show after.json"),
    "trace show --sort": ("trace show before.json", "trace show before.json --sort=count"),
    "trace show --rows": ("trace show before.json", "trace show before.json --rows=1"),
    "trace show --steps": ("trace show before.json", "trace show before.json --steps"),
    "trace show --collectives": ("trace show before.json", "trace show before.json --collectives"),
    "trace show --overlap": ("trace show before.json", "trace show before.json --overlap"),
    "trace show --idle": ("trace show before.json", "trace show before.json --idle"),
    "trace diff base": ("trace diff before.json after.json", "trace diff after.json after.json"),
    "trace diff head": ("trace diff before.json before.json", "trace diff before.json after.json"),
    "trace diff --rows": ("trace diff before.json after.json", "trace diff before.json after.json --rows=1"),
    "trace diff --output": (
        "trace diff before.json after.json",
        "trace diff before.json after.json -o both.json",
    ),
    "trace to-run file": ("trace to-run before.json -o run.json", "trace to-run after.json -o run.json"),
    "trace to-run --output": (
        "trace to-run before.json -o run.json",
        "trace to-run before.json -o run2.json",
    ),
    "trace to-run --test": (
        "trace to-run before.json -o run.json",
        "trace to-run before.json -o run.json --test=t.py::test_x",
    ),
}
# Of `attach`, what a trace has with the argument alone.
ATTACHED = {
    "attach --shapes": '"Input Dims"',
    "attach --memory": '"[memory]"',
    "attach --stack": '"python_function"',
    "attach --cpp-stack": '"C++ stack"',
    "attach --sampling": '"opprof_sampling": 0.5',
}
OF_ATTACH = {"attach pid", "attach --seconds", "attach --output"}
# Each is given in tests/e2e/test_bisect.py, where there are commits.
OF_BISECT = {
    *("bisect metric", "bisect test", "bisect --good", "bisect --bad", "bisect --setup", "bisect --resume"),
    *("bisect --store", "bisect --timeout", "bisect --python"),
}
# Each is given in tests/e2e/test_deaths.py, where processes die.
OF_RECOVER = {"recover folder", "recover --output", "recover --remove", "recover --all"}
# Of `comment`, what only a server sees: the test that shows it, and the file that it is in.
OF_COMMENT = {
    "comment --from-event": ("from_event", "regression_is_commented_as_the_pull_requests_own_numbers"),
    "comment --baseline": ("from_event", "baseline_is_that_of_the_branch_it_would_be_merged_into"),
    "comment --output": ("from_event", "regression_is_commented_as_the_pull_requests_own_numbers"),
    "comment --forge": ("cli", "forge_can_be_named"),
    "comment --when": ("cli", "good_news_can_be_kept_quiet"),
    "comment --author": ("cli", "author_is_who_the_command_line_says"),
    "comment --dry-run": ("cli", "dry_run_needs_no_job"),
}
# Of `prepare`, the test that builds for a torch elsewhere.
OF_PREPARE = {"prepare --torch", "prepare --output"}
# Of `ab`, the test of whole runs that shows what the argument does, and before it the file that it is in.
OF_AB = {
    "ab base": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --processes": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --steps": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --max-time": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --min-effect": ("resuming", "resume_finds_the_newest_of_the_same_plan_and_starts_in_a_subfolder"),
    "ab --max-noise": ("resuming", "what_was_measured_is_kept_and_resumed"),
    "ab --setup": ("environments", "a_base_that_does_not_build_is_told_with_its_last_lines"),
    "ab --python": ("environments", "each_side_has_an_environment_of_its_own"),
    "ab --seed": ("resuming", "what_was_measured_is_kept_and_resumed"),
    "ab --timeout": ("disturbances", "a_process_that_hangs_is_ended_and_run_again"),
    "ab --resume": ("resuming", "what_was_measured_is_kept_and_resumed"),
    "ab --output": ("verdicts", "a_slower_op_is_found_and_named"),
    "ab --fail-on": ("resuming", "resume_finds_the_newest_of_the_same_plan_and_starts_in_a_subfolder"),
    "ab --verbose": ("resuming", "what_was_measured_is_kept_and_resumed"),
    "ab --quiet": ("resuming", "resume_finds_the_newest_of_the_same_plan_and_starts_in_a_subfolder"),
}
# Of `accept`, the tests of causes give both.
OF_ACCEPT = {"accept --all", "accept --cause"}
# Of `run`, the tests of whole runs give each of its options.
OF_RUN = {
    *("run --shapes", "run --memory", "run --cpp-stack", "run --sampling", "run --stack", "run --sort"),
    *("run --rows", "run --trace", "run --output", "run --compare", "run --store", "run --module"),
    "run program",
}
# Of no command, and in tests/integration/test_completion.py, as it ends the process.
OF_ALL_COMMANDS = {"--print-completion"}
# Of `view`, the test that shows what the argument does: what it serves is to be fetched.
OF_VIEW = {
    "view target": "a_test_that_regressed_is_shown_on_both_sides",
    "view --test": "what_is_named_is_shown",
    "view --side": "what_is_named_is_shown",
    "view --traces": "traces_may_lie_elsewhere",
    "view --no-browser": "perfetto_reads_what_is_served",
    "view --ui": "perfetto_reads_what_is_served",
    "view --port": "a_test_that_regressed_is_shown_on_both_sides",
}
# Of `mcp`, the test that starts a server with both.
OF_MCP = {"mcp folder", "mcp --store"}
# In tests/e2e/test_replay.py.
OF_REPLAY = {"replay --cpu"}
OF_FLEET = {
    *(f"fleet ingest {name}" for name in ("source", "--output", "--job", "--window", "--expect", "--engine")),
    *(f"fleet show {name}" for name in ("job", "--window", "--expect", "--json", "--html", "--tables")),
    *(
        f"fleet diff {name}"
        for name in ("base", "head", "--fail-on", "--rows", "--json", "--html", "--tables")
    ),
    *(f"fleet sql {name}" for name in ("query", "--job", "--tables")),
    "fleet ingest --workers",
}
LISTENS = """
import torch, pytest_opprof
pytest_opprof.listen()
print("ready", flush=True)
while True:
    torch.ones(16).add(1)
"""


def arguments_of(parser: argparse.ArgumentParser, command: tuple[str, ...] = ()) -> Iterator[str]:
    """All that a parser and those below it take, by command and longest name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from arguments_of(below, (*command, name))
        elif not isinstance(action, argparse._HelpAction) and action.dest != "version":
            is_switch = isinstance(action, argparse.BooleanOptionalAction)
            names = action.option_strings[:1] if is_switch else action.option_strings
            yield " ".join((*command, (names or [action.dest])[-1]))


def trace_of(ops: int) -> list[dict[str, Any]]:
    """Two steps of so many ops, of a kind that all last the same and of another that is called once."""
    row = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1}
    events: list[dict[str, Any]] = []
    for start in (0, 1000):
        step = {"name": f"ProfilerStep#{start // 1000}", "cat": "user_annotation", "ts": start, "dur": 900}
        events += [row | step, row | {"name": "aten::long", "ts": start + 1, "dur": 300}]
        events += [
            row | {"name": "aten::mul", "ts": start + 400 + 10 * place, "dur": 5} for place in range(ops)
        ]
    return events


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs, stores and traces, where commands are started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    runs = {
        "base": simple_run(simple_test({"aten::mul": 9, "aten::add": 4})),
        "head": simple_run(simple_test({"aten::mul": 10, "aten::add": 4})),
        "two": simple_run(
            simple_test({"aten::mul": 1}, node_id="t.py::test_x"),
            simple_test({"aten::add": 1}, node_id="t.py::test_y"),
        ),
    }
    for name, run in runs.items():
        write_run(tmp_path / f"{name}.json", run)
    for name in ("repository", "bare"):
        subprocess.run(["git", "init", "-q", *["--bare"] * (name == "bare"), tmp_path / name], check=True)
    for store, count in (("dir:.opprof", 4), ("dir:other", 7), ("git:repository", 1)):
        for commit in "01":
            saved = simple_run(simple_test({"aten::mul": count}), commit=Commit(id=commit * 40, dirty=False))
            open_store(store, root=tmp_path).save("main", saved, collected=Collected())
        for number, test in enumerate("xxy" if store.startswith("dir:") else ""):
            remembered = simple_run(
                simple_test({"aten::mul": count + number}, node_id=f"t.py::test_{test}"),
                run_id=f"{store}{number}",
                name="main" if number else "release",
            )
            remember(history_of(store, root=tmp_path), remembered, repository=tmp_path)
    (tmp_path / "collected.txt").write_text("tests/test_a.py::test_z\n", encoding="utf-8")
    rich = simple_run(
        simple_test({"aten::mul": 9, "aten::add": 4}, node_id="t.py::test_x"),
        simple_test({"aten::add": 1}, node_id="t.py::test_y"),
    )
    open_store("dir:.opprof", root=tmp_path).save("rich", rich, collected=Collected())
    for name, ops in (("before", 3), ("after", 5)):
        (tmp_path / f"{name}.json").write_text(json.dumps(trace_of(ops)), encoding="utf-8")
    for name, most in (("stored", 2), ("slower", 3)):
        stats = {"rounds": 2, "min": 1, "max": most, "mean": 1.5}
        benchmarks = [{"fullname": "t.py::test_x", "stats": stats}]
        stored = {"datetime": "2026-01-01T00:00:00", "benchmarks": benchmarks}
        (tmp_path / f"{name}.json").write_text(json.dumps(stored), encoding="utf-8")
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
    ranged = "from pytest_opprof import record_function\n@record_function('work')\ndef test_it(): pass\n"
    (tmp_path / "one" / "test_one.py").write_text(ranged)
    keep_last(tmp_path / ".opprof", risen(to=2))
    write_comparison(tmp_path / "other.json", risen(to=3))
    return tmp_path


def risen(*, to: int) -> Comparison:
    """A comparison in which a watched op and the total of two tests rose."""
    before, after = (
        simple_run(*(simple_test({"aten::item": many}, node_id=f"t.py::test_{name}") for name in "xy"))
        for many in (1, to)
    )
    return compare_runs(before, after, created=datetime(2026, 1, 3, tzinfo=UTC), opprof_version="0.1.0")


def outcome(typed: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[object, ...]:
    """The exit code, what is told, and the files that are there afterwards, without what is new each time."""
    code = main([word.replace("&", " ") for word in typed.split()])
    told = capsys.readouterr().out
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    runs = [json.loads(path.read_text()).get("tests") for path in folder.glob("run*.json")]
    return code, told, files, str(runs)


@pytest.mark.parametrize("argument", PROOFS)
def test_argument_makes_a_difference(argument: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without, with_it = PROOFS[argument]
    if not argument.startswith("init"):  # which leaves something behind
        outcome(without, folder, capsys)
        assert outcome(without, folder, capsys) == outcome(without, folder, capsys)
    assert outcome(without, folder, capsys) != outcome(with_it, folder, capsys)


@pytest.fixture
def listening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The number of a process that runs ops and can be attached to."""
    pytest.importorskip("torch")
    monkeypatch.setenv("OPPROF_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen([sys.executable, "-c", LISTENS], env=os.environ, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            yield child.pid
        finally:
            child.kill()


def attached(*words: str) -> str:
    assert main(["attach", *words, "-o", "trace.json"]) == 0
    return Path("trace.json").read_text(encoding="utf-8")


def test_arguments_of_attach_are_in_its_trace(listening: int) -> None:
    plain = attached(str(listening), "--seconds", "0.05")
    for argument, mark in ATTACHED.items():
        option = argument.split()[1]
        value = ["0.5"] if option == "--sampling" else []
        assert mark not in plain, argument
        assert mark in attached(str(listening), "--seconds", "0.05", option, *value), argument


def test_attach_goes_to_its_process_for_a_while(listening: int, capsys: pytest.CaptureFixture[str]) -> None:
    for seconds in ("0.05", "0.1"):
        assert main(["attach", str(listening), "--seconds", seconds]) == 0
        assert f"recording process {listening} for {seconds} s" in capsys.readouterr().out
    assert gzip.decompress(Path(f"opprof-{listening}.json.gz").read_bytes())
    assert main(["attach", str(listening), "--seconds", "0.05", "-o", "named.json"]) == 0
    assert Path("named.json").exists()
    assert main(["attach", str(os.getpid())]) != 0  # which does not listen


def test_every_proof_of_ab_gives_its_argument() -> None:
    for argument, (file, name) in OF_AB.items():
        text = (Path(__file__).parent.parent / "e2e" / "ab" / f"test_{file}.py").read_text(encoding="utf-8")
        body = text.partition(f"def test_{name}(")[2].partition("\ndef ")[0]
        option = (
            argument.split()[1].replace("--output", "-o").replace("--verbose", "-v").replace("--quiet", "-q")
        )
        assert body, name
        assert not option.startswith("-") or f'"{option}' in body, argument


def test_every_proof_of_view_is_there() -> None:
    text = (Path(__file__).parent / "test_view.py").read_text(encoding="utf-8")
    for argument, name in OF_VIEW.items():
        option = argument.split()[1]
        assert f"def test_{name}(" in text, argument
        assert not option.startswith("--") or f'"{option}' in text, argument


def test_every_proof_of_comment_is_there() -> None:
    for argument, (file, name) in OF_COMMENT.items():
        text = (Path(__file__).parent / f"test_comment_{file}.py").read_text(encoding="utf-8")
        assert f"def test_{name}(" in text, name
        assert argument.split()[1] in text.replace('"-o"', "--output"), argument


def test_arguments_of_prepare_are_tried() -> None:
    proof = "prepared_folder_serves_a_machine_without_a_compiler"
    text = Path(__file__).with_name("test_observer_build.py").read_text(encoding="utf-8")
    _, _, after = text.partition(f"def test_{proof}(")
    for argument in OF_PREPARE:
        assert argument.split()[1] in after.partition("\ndef ")[0], argument


def test_every_option_of_all_commands_is_tried() -> None:
    text = Path(__file__).with_name("test_completion.py").read_text(encoding="utf-8")
    for argument in OF_ALL_COMMANDS:
        assert f'main(["{argument}", shell])' in text, argument


def test_every_option_of_accept_is_given_in_its_tests() -> None:
    text = (Path(__file__).parent.parent / "e2e" / "accept" / "test_causes.py").read_text(encoding="utf-8")
    for argument in OF_ACCEPT:
        assert f'"{argument.split()[1]}"' in text, argument


def test_every_option_of_run_is_given_in_its_tests() -> None:
    text = (Path(__file__).parent.parent / "e2e" / "test_run.py").read_text(encoding="utf-8")
    short = {"--output": '"-o"', "--module": '"-m"'}
    for argument in OF_RUN - {"run program"}:
        option = argument.split()[1]
        assert short.get(option, f'"{option}') in text, argument


def test_arguments_of_mcp_are_given_to_a_server() -> None:
    text = (Path(__file__).parent.parent / "e2e" / "test_mcp.py").read_text(encoding="utf-8")
    body = text.partition("def test_folder_and_store_can_be_named(")[2].partition("\ndef ")[0]
    assert 'agent_in(elsewhere, str(copied.folder), "--store=' in body


def test_every_option_of_fleet_is_given_in_its_tests() -> None:
    text = Path(__file__).with_name("test_fleet.py").read_text(encoding="utf-8").replace('"-o"', '"--output"')
    for argument in OF_FLEET:
        _, action, option = argument.split()
        assert f'"fleet", "{action}"' in text, argument
        assert not option.startswith("--") or f'"{option}"' in text, argument


def test_every_argument_has_its_proof() -> None:
    known = (
        PROOFS.keys()
        | ATTACHED.keys()
        | OF_ATTACH
        | OF_BISECT
        | OF_RECOVER
        | OF_RUN
        | OF_ACCEPT
        | OF_PREPARE
        | OF_ALL_COMMANDS
        | OF_REPLAY
        | OF_AB.keys()
        | OF_VIEW.keys()
        | OF_COMMENT.keys()
        | OF_MCP
        | OF_FLEET
    )
    assert set(arguments_of(whole_parser())) == known
