"""opprof attach: a process is recorded from outside."""

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.programs.children import answer_of

from pytest_opprof.cli.main import main
from pytest_opprof.profiler.on_demand import place_of

WORK = """
    import sys, time
    import pytest_opprof

    {listen}
    print("ready", flush=True)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with pytest_opprof.record_function("work"):
            time.sleep(0.001)
"""


@contextlib.contextmanager
def process(program: str, folder: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A working process, killed at the end."""
    started = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | {"OPPROF_DIR": str(folder)} | variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield started
    finally:
        started.kill()
        started.wait()
        if started.stdout is not None:
            started.stdout.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where both meet."""
    monkeypatch.setenv("OPPROF_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("by", ["call", "variable"])
def test_process_is_recorded_for_a_while(folder: Path, capsys: pytest.CaptureFixture[str], by: str) -> None:
    listens = "pytest_opprof.listen()" if by == "call" else "pass"
    variables = {"OPPROF_ATTACH": "1"} if by == "variable" else {}
    with process(WORK.format(listen=listens), folder, **variables) as child:
        for path in ("first.json", "second.json.gz"):
            assert main(["attach", str(child.pid), "--seconds", "0.2", "-o", path]) == 0
            assert f"{folder / path}" in capsys.readouterr().out
        assert child.poll() is None
    first = json.loads((folder / "first.json").read_text())
    second = json.loads(gzip.decompress((folder / "second.json.gz").read_bytes()))
    for trace in (first, second):
        assert sum(event["name"] == "work" for event in trace["traceEvents"]) > 5


@pytest.mark.parametrize("options", [["--stack"], ["--cpp-stack"], ["--stack", "--cpp-stack"]])
def test_options_reach_the_process(folder: Path, options: list[str]) -> None:
    with process(WORK.format(listen="pytest_opprof.listen()"), folder) as child:
        assert main(["attach", str(child.pid), "--seconds", "0.2", *options, "-o", "trace.json"]) == 0
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    has_calls = any(event.get("cat") == "python_function" for event in events)
    has_cpp = any("C++ stack" in event.get("args", {}) for event in events)
    assert (has_calls, has_cpp) == ("--stack" in options, "--cpp-stack" in options)


@pytest.mark.usefixtures("folder")
def test_invalid_share_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", str(os.getpid()), "--sampling", "2"]) == 2
    told = capsys.readouterr().err
    assert "--sampling: sampling is 2.0; it is the share of torch's ops to record" in told


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf"])
def test_impossible_time_is_refused_before_the_start(
    capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    assert main(["attach", str(os.getpid()), "--seconds", seconds]) == 2
    assert "it must be a number from 0.01 to" in capsys.readouterr().err


@contextlib.contextmanager
def attaching(pid: int, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A running ``opprof attach``, killed at the end."""
    command = [sys.executable, "-m", "pytest_opprof", "attach", str(pid), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        yield started
        started.kill()


def test_terminated_attach_ends_the_recording(folder: Path) -> None:
    with process(WORK.format(listen="pytest_opprof.listen()"), folder) as child:
        with attaching(child.pid, "--seconds", "60", "-o", "first.json") as command:
            assert command.stdout is not None
            assert command.stdout.readline().startswith("recording process")
            command.terminate()
            assert command.stdout.readline() == "ended early\n"
            assert command.wait() == 0
        assert (folder / "first.json").exists()
        assert main(["attach", str(child.pid), "--seconds", "0.01"]) == 0


def test_request_that_nobody_waits_for_is_withdrawn(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = "pytest_opprof.listen(); import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])"
    monkeypatch.setattr("pytest_opprof.cli.attach._PATIENCE_S", 0.05)
    with process(WORK.format(listen=busy), folder) as child:
        request = place_of(child.pid, "request")
        assert main(["attach", str(child.pid)]) == 3
        assert "did not answer in 0.05 s" in capsys.readouterr().err
        assert not request.exists()
        with attaching(child.pid) as command:
            while not request.exists():
                assert command.poll() is None
            assert main(["attach", str(child.pid)]) == 2
            assert "has not answered another opprof attach yet" in capsys.readouterr().err
            command.send_signal(signal.SIGINT)
            assert command.wait() == 130
        assert not request.exists()


@pytest.mark.slow
def test_sampling_reaches_the_process(folder: Path) -> None:
    pytest.importorskip("torch")
    program = WORK.format(listen="import torch; pytest_opprof.listen()").replace(
        "time.sleep(0.001)", "torch.ones(1)"
    )
    with process(program, folder) as child:
        asked = ["attach", str(child.pid), "--seconds", "0.5", "--sampling", "0.001", "-o", "trace.json"]
        assert main(asked) == 0
    trace = json.loads((folder / "trace.json").read_text())
    names = [event["name"] for event in trace["traceEvents"]]
    assert trace["opprof_sampling"] == 0.001
    assert names.count("aten::ones") < names.count("work") / 10


def test_process_that_does_not_listen_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The signal would end it."""
    with process(WORK.format(listen="pass"), folder) as child:
        assert main(["attach", str(child.pid)]) == 2
        assert (
            f"process {child.pid} does not listen: start it with OPPROF_ATTACH=1" in capsys.readouterr().err
        )
        assert child.poll() is None
    assert main(["attach", str(child.pid)]) == 2


def test_busy_process_says_so_and_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy = "pytest_opprof.listen(); prof = pytest_opprof.profile(); prof.start()"
    with process(WORK.format(listen=busy), folder) as child:
        assert main(["attach", str(child.pid)]) == 3
        assert "a profile is being recorded in this process already" in capsys.readouterr().err
        assert child.poll() is None


def test_unwritable_trace_is_refused_before_the_start(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with process(WORK.format(listen="pytest_opprof.listen()"), folder) as child:
        assert main(["attach", str(child.pid), "-o", str(folder)]) == 5
        told = capsys.readouterr()
        assert "cannot be written: it is a folder" in told.err
        assert told.out == ""
        assert main(["attach", str(child.pid), "--seconds", "0.01", "-o", "trace.json"]) == 0


def test_forked_children_are_not_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forks = """pytest_opprof.listen()
    import os
    child = os.fork()
    if child:
        open("child", "w").write(str(child))
    """
    with process(
        WORK.format(listen=forks).replace('print("ready"', 'child and print("ready"'), folder
    ) as parent:
        child = int((folder / "child").read_text())
        try:
            assert main(["attach", str(child)]) == 2
            assert "does not listen" in capsys.readouterr().err
            os.kill(child, signal.SIGUSR2)  # sent by another program, without a request
            assert main(["attach", str(parent.pid), "--seconds", "0.01", "-o", "trace.json"]) == 0
        finally:
            os.kill(child, signal.SIGKILL)


def test_forked_child_may_listen_too(folder: Path) -> None:
    forks = """pytest_opprof.listen()
    import os
    if child := os.fork():
        os.waitpid(child, 0)
    pytest_opprof.listen()
    open("child", "w").write(str(os.getpid()))
    """
    with process(WORK.format(listen=forks), folder):
        child = int((folder / "child").read_text())
        try:
            assert main(["attach", str(child), "--seconds", "0.2", "-o", "trace.json"]) == 0
        finally:
            os.kill(child, signal.SIGKILL)
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert any(event["name"] == "work" for event in events)


def test_listening_leaves_nothing_behind(folder: Path) -> None:
    program = """
        import json, signal
        import pytest_opprof

        pytest_opprof.listen()
        pytest_opprof.listen()
        print(json.dumps(signal.getsignal(signal.SIGUSR2) not in (signal.SIG_DFL, signal.SIG_IGN)))
    """
    assert answer_of(program, environment={"OPPROF_DIR": str(folder)}) is True
    (left,) = folder.iterdir()
    assert left.name == f"opprof-attach-{os.getuid()}"
    assert list(left.iterdir()) == []
    assert left.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("signal.signal(signal.SIGUSR2, print)", "this program handles SIGUSR2 itself"),
        (
            "one = threading.Thread(target=attempt); one.start(); one.join(); raise SystemExit",
            "listen() must be called on the main thread",
        ),
    ],
    ids=["taken", "thread"],
)
def test_impossible_listening_says_why(folder: Path, before: str, message: str) -> None:
    program = f"""
        import json, signal, threading
        import pytest_opprof
        from pytest_opprof.errors import UsageError

        def attempt():
            try:
                pytest_opprof.listen()
            except UsageError as error:
                print(json.dumps(str(error)), flush=True)

        {before}
        attempt()
    """
    assert message in answer_of(program, environment={"OPPROF_DIR": str(folder)})
