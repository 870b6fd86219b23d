"""Chrome traces: valid for every reader, whatever the names are, written whole or not at all."""

import gzip
import json
import os
import shutil
import stat
import subprocess
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.programs.children import answer_of
from support.programs.range_programs import Turn, programs, run
from support.programs.windows import RANGES_AND_OPS, Window, names

from pytest_opprof import record_function
from pytest_opprof.capture.recording import Recording

HOSTILE = [
    'a"b\\c',
    "日本",
    "lone \ud800 surrogate",
    "line\nend",
    "nul \0",
    "\x7f\x1b",
    "</script>",
    "🔥",
    "",
]


@pytest.fixture
def recording() -> Recording:
    """Two steps of nested ranges, one with text of its own."""
    with Window() as window:
        for step in range(2):
            with record_function(f"ProfilerStep#{step}"), record_function("load", "batch=8"):
                pass
    return window.recording


def trace_of(recording: Recording, folder: Path, **options: Any) -> Any:
    path = folder / "trace.json"
    recording.write_chrome_trace(path, **options)
    return json.loads(path.read_text(encoding="utf-8"))


def slices(trace: Any) -> list[Any]:
    """All slices but the window's own, which is not an event."""
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] != "Trace"]


def nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


def window_start(trace: Any) -> int:
    """In nanoseconds from the trace's base time."""
    (window,) = (event for event in trace["traceEvents"] if event.get("cat") == "Trace")
    return nanoseconds(window["ts"])


# ---- names ----


def as_utf8(text: str) -> str:
    """The text with its lone surrogates escaped, because they have no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def test_hostile_names_survive(tmp_path: Path) -> None:
    with Window() as window:
        for name in HOSTILE:
            with record_function(name):
                pass
    assert [event["name"] for event in slices(trace_of(window.recording, tmp_path))] == [
        as_utf8(name) for name in HOSTILE
    ]


@given(name=st.text(st.characters(codec=None), max_size=100), args=st.text(max_size=100))
def test_any_name_survives(tmp_path_factory: pytest.TempPathFactory, name: str, args: str) -> None:
    with Window() as window, record_function(name, args):
        pass
    (event,) = slices(trace_of(window.recording, tmp_path_factory.getbasetemp()))
    assert (event["name"], event["args"]["args"]) == (as_utf8(name), as_utf8(args))


def test_names_of_long_traces_are_whole(tmp_path: Path) -> None:
    """The writer's buffer is flushed in the middle of names, characters and numbers."""
    expected = [f"{'é日🔥' * 50} {number}" for number in range(5000)]
    with Window() as window:
        for name in expected:
            with record_function(name):
                pass
    trace = trace_of(window.recording, tmp_path)
    assert (tmp_path / "trace.json").stat().st_size > 2 << 20
    assert [event["name"] for event in slices(trace)] == expected


# ---- contents ----


def test_trace_matches_the_recording(recording: Recording, tmp_path: Path) -> None:
    trace = trace_of(recording, tmp_path)
    events = slices(trace)
    assert [event["name"] for event in events] == names(recording)
    start = window_start(trace)
    assert trace["baseTimeNanoseconds"] + start == recording.trace_start_ns
    for row, event in enumerate(events):
        assert nanoseconds(event["ts"]) == start + recording.start_ns[row]
        assert nanoseconds(event["dur"]) == recording.duration_ns[row]
        assert event["cat"] == "user_annotation"
        assert (event["pid"], event["tid"]) == (os.getpid(), recording.threads[0].os_tid)
    assert [event["args"].get("args") for event in events] == [None, "batch=8"] * 2
    named = {event["name"]: event["args"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert named["process_name"] == {"name": "python"}
    assert named["thread_name"] == {"name": f"thread {recording.threads[0].os_tid} (MainThread)"}


@given(programs)
def test_slices_nest_on_their_threads(tmp_path_factory: pytest.TempPathFactory, program: list[Turn]) -> None:
    with Window() as window:
        run(program)
    recording = window.recording
    trace = trace_of(recording, tmp_path_factory.getbasetemp())
    open_until: dict[int, list[int]] = defaultdict(list)
    for event in slices(trace):
        start = nanoseconds(event["ts"])
        end = start + nanoseconds(event["dur"])
        around = open_until[event["tid"]]
        while around and around[-1] <= start:
            around.pop()
        assert not around or end <= around[-1]
        around.append(end)
    begun = [event for event in trace["traceEvents"] if event["ph"] == "b"]
    ended = {event["id"]: event for event in trace["traceEvents"] if event["ph"] == "e"}
    assert len(slices(trace)) + len(begun) == len(recording)
    assert ended.keys() == {event["id"] for event in begun}
    assert all(event["ts"] <= ended[event["id"]]["ts"] for event in begun)


def test_open_ranges_reach_to_the_end(tmp_path: Path) -> None:
    scope = record_function("open")
    with Window() as window:
        scope.__enter__()
    scope.__exit__()
    trace = trace_of(window.recording, tmp_path)
    (event,) = slices(trace)
    assert event["args"]["finished"] is False
    end = nanoseconds(event["ts"]) + nanoseconds(event["dur"])
    assert end == window_start(trace) + window.recording.trace_end_ns


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's on sparse tensors
def test_torch_inputs_are_in_the_trace(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    left, right = torch.ones(2, 3, requires_grad=True), torch.ones(3, 5)
    sparse = torch.eye(2).to_sparse()
    with Window(sources=RANGES_AND_OPS, record_shapes=True) as window:
        torch.cat([left @ right, torch.full((1, 5), 0.1)]).sum().backward()
        torch.sparse.mm(sparse, sparse)
    recording = window.recording
    events = slices(trace_of(recording, tmp_path))
    for row, event in enumerate(events):
        inputs = recording.inputs(row)
        args = event["args"]
        if inputs is None:
            assert "Input Dims" not in args
            continue
        assert args["Input Dims"] == inputs.shapes
        assert args["Input Strides"] == inputs.strides
        assert args["Input type"] == inputs.dtypes
        for told, expected in zip(args["Concrete Inputs"], inputs.concrete, strict=True):
            text = "" if expected is None else str(expected)
            assert told == text or float(told) == float(text)
    numbers = [event["args"]["Sequence number"] for event in events if event["name"].startswith("MmBackward")]
    forward = [event["args"].get("Sequence number") for event in events if event["name"] == "aten::mm"]
    assert numbers[0] in forward


# ---- metadata ----


def test_metadata_becomes_members(recording: Recording, tmp_path: Path) -> None:
    metadata = {
        "numbers": "[1, 2.5, NaN]",
        'a"b\\c\ud800': '"x\\ny"',
        "": '{"nested": null}',
        "traceEvents": '"not the events"',
    }
    trace = trace_of(recording, tmp_path, metadata=metadata)
    assert trace["numbers"] == [1, 2.5, "NaN"]
    assert trace['a"b\\c\ud800'] == "x\ny"
    assert trace[""] == {"nested": None}
    assert trace["deviceProperties"] == []
    assert len(slices(trace)) == 4


@pytest.mark.parametrize(
    "value", ["", "[1", "nope", "{'a': 1}", "[" * 100_000, 5], ids=lambda value: str(value)[:9]
)
def test_invalid_metadata_writes_nothing(recording: Recording, tmp_path: Path, value: Any) -> None:
    path = tmp_path / "trace.json"
    path.write_text("earlier")
    with pytest.raises(ValueError, match=r"metadata 'key': .* is not JSON"):
        recording.write_chrome_trace(path, metadata={"key": value})
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


# ---- files ----


def test_trace_can_be_written_again(recording: Recording, tmp_path: Path) -> None:
    first = tmp_path / "trace.json"
    recording.write_chrome_trace(first)
    written = first.read_bytes()
    recording.write_chrome_trace(first)
    assert first.read_bytes() == written
    assert list(tmp_path.iterdir()) == [first]


def test_suffix_gz_is_compressed(recording: Recording, tmp_path: Path) -> None:
    plain, packed = tmp_path / "trace.json", tmp_path / "trace.json.gz"
    recording.write_chrome_trace(str(plain))
    recording.write_chrome_trace(packed)
    trace, unpacked = json.loads(plain.read_bytes()), json.loads(gzip.decompress(packed.read_bytes()))
    assert trace.pop("traceName") == str(plain)
    assert unpacked.pop("traceName") == str(packed)
    assert unpacked == trace
    assert {path.name for path in tmp_path.iterdir()} == {"trace.json", "trace.json.gz"}


def test_file_has_the_usual_rights(recording: Recording, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for name in ("trace.json", "trace.json.gz"):
            recording.write_chrome_trace(tmp_path / name)
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o640
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def test_missing_folder_is_an_os_error(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "trace.json"
    with pytest.raises(FileNotFoundError, match=f"{path}'$"):
        recording.write_chrome_trace(path)


def test_longest_name_is_written(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / f"{'a' * 247}.json.gz"
    recording.write_chrome_trace(path)
    assert path.exists()


def test_link_stays_and_its_target_is_written(recording: Recording, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("trace.json")
    for _ in range(2):
        recording.write_chrome_trace(tmp_path / "link.json")
        assert (tmp_path / "link.json").is_symlink()
        assert json.loads((tmp_path / "trace.json").read_bytes())


def test_folder_in_place_of_the_file_is_an_os_error(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.mkdir()
    with pytest.raises(IsADirectoryError, match=f": '{path}'$"):
        recording.write_chrome_trace(path)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_pipe_is_written_into(recording: Recording, tmp_path: Path) -> None:
    """A device or pipe is not replaced: as root, a file could replace /dev/null."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    recording.write_chrome_trace(pipe)
    reader.join()
    assert len(slices(json.loads(read[0]))) == 4
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_disk_that_fills_up_leaves_the_earlier_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("earlier")
    said = answer_of(
        f"""
    import json, resource, signal
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    collector.open(sources=frozenset({{"ranges"}}))
    collector.start()
    for number in range(20_000):
        with record_function(f"range {{number}}"):
            pass
    recording = collector.stop()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        recording.write_chrome_trace({name!r})
    except OSError as error:
        print(json.dumps(str(error)))
    """,
        cwd=tmp_path,
    )
    assert name in said
    assert "File too large" in said
    assert (tmp_path / name).read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == [name]


# ---- other programs ----


@pytest.mark.filterwarnings("ignore::Warning")  # HTA's own, and pandas' about HTA
def test_holistic_trace_analysis_opens_it(tmp_path: Path) -> None:
    trace_analysis = pytest.importorskip(
        "hta.trace_analysis", reason="HolisticTraceAnalysis is not installed (it is in the dev extra)"
    )
    from hta.common.trace_file import create_rank_to_trace_dict
    from hta.utils.validate_trace import validate_trace_format

    with Window() as window:
        for step in range(3):
            with record_function(f"ProfilerStep#{step}"):
                for name in HOSTILE:
                    with record_function(name):
                        pass
    path = tmp_path / "trace.json"
    metadata = {"distributedInfo": json.dumps({"backend": "gloo", "rank": 3, "world_size": 8})}
    window.recording.write_chrome_trace(path, metadata=metadata)

    analysis = trace_analysis.TraceAnalysis(trace_files={0: str(path)}, include_last_profiler_step=True)
    assert list(analysis.get_profiler_steps()) == [0, 1, 2]
    symbols = analysis.t.symbol_table.get_sym_table()
    assert [symbols[name] for name in analysis.t.get_trace(0)["name"]] == [
        as_utf8(name) for name in names(window.recording)
    ]
    assert create_rank_to_trace_dict([str(path)]) == (True, {3: str(path)})
    assert validate_trace_format(str(path), level="complete") == (True, {})


# ---- the program's locale ----

WITH_REALS = """
import json, locale, math, sys
import torch
from pytest_opprof import profile
locale.setlocale(locale.LC_ALL, NAME)
assert locale.localeconv()["decimal_point"] != "."
launch = torch._C._profiler._RecordFunctionFast
values = {"ratio": 0.5, "tiny": -1.5e-300, "infinite": math.inf, "listed": [0.25, math.nan, -math.inf]}
with profile(record_shapes=True) as prof:
    torch.ones(2).clamp(0.25, 2.0)
    with launch("kernel", [], values):
        pass
prof.export_chrome_trace(PATH)
print(json.dumps(PATH))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["de_DE", "ps_AF"])
def test_numbers_have_a_point_in_every_locale(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    localedef = shutil.which("localedef")
    if localedef is None:
        pytest.skip("localedef, which makes a locale, is not installed")
    made = [localedef, "--no-archive", "-i", name, "-f", "UTF-8", str(tmp_path / f"{name}.UTF-8")]
    if subprocess.run(made, check=False, capture_output=True).returncode:
        pytest.skip(f"the sources of the locale {name} are not installed")
    program = WITH_REALS.replace("NAME", repr(f"{name}.UTF-8"))
    path = answer_of(
        program.replace("PATH", repr(str(tmp_path / "trace.json"))), environment={"LOCPATH": str(tmp_path)}
    )
    rows = json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]
    args = {row["name"]: row["args"] for row in rows if row.get("cat") == "cpu_op"}
    assert args["aten::clamp"]["Concrete Inputs"] == ["", "0.25", "2."]
    kernel = args["kernel"]
    assert (kernel["ratio"], kernel["tiny"], kernel["infinite"]) == (0.5, -1.5e-300, "inf")
    assert kernel["listed"] == [0.25, "nan", "-inf"]
