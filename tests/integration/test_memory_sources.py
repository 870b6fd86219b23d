"""Memory without torch: allocations of Python's allocators and the malloc family, in our recordings."""

import os
import platform
import shutil
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from support.programs.children import answer_of
from support.programs.windows import RANGES, Window

from pytest_opprof import record_function
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.window import MemoryChange
from pytest_opprof.cli.main import main

LARGE = 1_000_000
MALLOC = RANGES | {"memory-malloc"}


def changes(recording: Recording) -> list[MemoryChange]:
    found = (recording.memory(event) for event in range(len(recording)))
    return [change for change in found if change is not None]


def large(recording: Recording) -> list[int]:
    """Allocations and frees of blocks of a size that nothing else uses."""
    return [change.nbytes for change in changes(recording) if abs(change.nbytes) >= LARGE]


def of_range(recording: Recording, name: str) -> int:
    names = [recording.name(event) for event in range(len(recording))]
    return recording.cpu_memory[names.index(name)]


@pytest.mark.parametrize(("sources", "source"), [(RANGES, "memory-python"), (MALLOC, "memory-malloc")])
def test_blocks_are_seen_and_credited(sources: frozenset[str], source: str) -> None:
    with Window(sources=sources, profile_memory=True) as window:
        with record_function("take"):
            block = bytearray(LARGE)
        with record_function("give back"):
            del block
    recording = window.recording
    assert source in recording.sources
    taken, given = large(recording)
    assert LARGE <= taken == -given < LARGE + 100
    assert abs(of_range(recording, "take") - taken) < LARGE / 10
    assert abs(of_range(recording, "give back") + taken) < LARGE / 10


def test_a_large_object_is_one_block() -> None:
    """Python's object allocator allocates it from the raw allocator."""
    with Window(sources=RANGES, profile_memory=True) as window:
        block = bytes(LARGE)
    assert len(large(window.recording)) == 1
    del block


def test_growing_block_is_freed_first() -> None:
    with Window(sources=RANGES, profile_memory=True) as window:
        block = bytearray(LARGE)
        block.extend(bytes(100))
    seen = large(window.recording)
    assert len(seen) == 3
    assert seen[1] == -seen[0]
    assert seen[2] > LARGE


def test_small_objects_are_seen() -> None:
    with Window(sources=RANGES, profile_memory=True) as window, record_function("objects"):
        kept = [object() for _ in range(1000)]
    assert of_range(window.recording, "objects") >= 1000 * sys.getsizeof(kept[0])


def test_threads_have_their_own_memory() -> None:
    def work() -> None:
        with record_function("there"):
            kept.append(bytearray(LARGE))

    kept: list[bytearray] = []
    with Window(sources=RANGES, profile_memory=True) as window, record_function("here"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert of_range(window.recording, "there") >= LARGE
    assert of_range(window.recording, "here") < LARGE


@pytest.mark.parametrize("sources", [RANGES, MALLOC])
def test_nothing_is_seen_in_a_window_without_memory(sources: frozenset[str]) -> None:
    with Window(sources=sources, profile_memory=True):
        pass
    with Window(sources=sources) as window:
        bytearray(LARGE)
    assert changes(window.recording) == []
    assert not {"memory-python", "memory-malloc"} & set(window.recording.sources)


def test_equal_steps_take_equal_memory() -> None:
    """Memory from before the window does not count, so the first step equals the others."""
    collector = Collector.instance()
    collector.open(sources=RANGES)
    held = bytearray(LARGE)
    collector.start(profile_memory=True)
    for step in range(3):
        collector.step_begin(step)
        held = bytearray(LARGE)
        collector.step_end()
    steps, _ = collector.stop().memory_use()
    assert len({(step.allocated, step.peak, step.allocations) for step in steps[1:]}) == 1
    assert abs(steps[0].allocated - steps[1].allocated) < 1000
    del held


def test_the_first_step_of_a_process_is_equal_too() -> None:
    program = """
import json
from pytest_opprof.capture.collector import Collector
collector = Collector.instance()
collector.open(sources=frozenset({"ranges"}))
collector.start(profile_memory=True)
for step in range(3):
    collector.step_begin(step)
    collector.step_end()
steps, _ = collector.stop().memory_use()
print(json.dumps([step.allocations for step in steps]))
"""
    assert len(set(answer_of(program))) == 1


def test_tracemalloc_may_come_and_go_meanwhile() -> None:
    program = f"""
import tracemalloc
from pytest_opprof import profile
with profile(profile_memory=True) as prof:
    tracemalloc.start()
    kept = bytearray({LARGE})
assert tracemalloc.get_traced_memory()[0] >= {LARGE}
tracemalloc.stop()
with profile(profile_memory=True) as again:
    more = bytearray({LARGE})
for one in (prof, again):
    recording = one.cycles[0].recording
    changes = [recording.memory(event) for event in range(len(recording))]
    assert any(change and change.nbytes >= {LARGE} for change in changes)
print('"done"')
"""
    assert not tracemalloc.is_tracing()
    assert answer_of(program) == "done"


def test_tracemalloc_that_stops_takes_our_hooks_along() -> None:
    """The recording says so, and the next one has its memory."""
    program = f"""
import tracemalloc
from pytest_opprof.capture.collector import Collector
collector = Collector.instance()
collector.open(sources=frozenset({{"ranges"}}))
sizes = []
for window in range(3):
    if window == 1:
        tracemalloc.start()
    collector.start(profile_memory=True)
    if window == 1:
        tracemalloc.stop()
    kept = bytearray({LARGE})
    recording = collector.stop()
    changes = [recording.memory(event) for event in range(len(recording))]
    sizes.append([max((one.nbytes for one in changes if one), default=0) >= {LARGE}, "memory-python" in recording.sources])
    lapses = collector.lapses
    assert bool(lapses) == (window == 1), lapses
import json
print(json.dumps(sizes))
"""
    assert answer_of(program) == [[True, True], [False, False], [True, True]]


def test_allocators_may_be_swapped_while_a_thread_calls_them() -> None:
    """Such a thread may combine the context of one allocator with the functions of the other."""
    program = f"""
import ctypes
from pytest_opprof.capture.collector import Collector
pointers = ctypes.c_void_p * 5
take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
def allocators():
    found = []
    for domain in range(3):
        found.append(pointers())
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(found[-1]))
    return found
before = allocators()
collector = Collector.instance()
collector.open(sources=frozenset({{"ranges"}}))
collector.start(profile_memory=True)
within = allocators()
for (context, malloc, *_), (ours, our_malloc, *_, our_free) in zip(before, within):
    assert malloc != our_malloc
    assert context == ours
    give(our_free)(None, take(our_malloc)(None, {LARGE}))
collector.stop()
assert [list(one) for one in allocators()] == [list(one) for one in before]
print('"done"')
"""
    assert answer_of(program) == "done"


def test_a_child_may_be_forked_meanwhile() -> None:
    for sources in (RANGES, MALLOC):
        with Window(sources=sources, profile_memory=True):
            done = subprocess.run(
                [sys.executable, "-c", "print(bytearray(9))"], check=True, capture_output=True
            )
    assert done.stdout


def test_numpys_data_is_seen_by_malloc() -> None:
    numpy = pytest.importorskip("numpy")
    with Window(sources=MALLOC, profile_memory=True) as window:
        with record_function("ones"):
            kept = numpy.ones(LARGE // 8)
        with record_function("zeros"):
            also = numpy.zeros(LARGE // 8)
    for name, array in (("ones", kept), ("zeros", also)):
        assert array.nbytes <= of_range(window.recording, name) < array.nbytes + LARGE / 10


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library has no second name for malloc")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="ASan replaces only the first name")
def test_malloc_that_cannot_be_watched_is_a_problem(tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path / "raw_allocator.so"
    source = Path(__file__).with_name("raw_allocator.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    program = f"""
import ctypes, json
ctypes.PyDLL({str(library)!r}, mode=ctypes.RTLD_GLOBAL).use()
from pytest_opprof.capture.collector import Collector
collector = Collector.instance()
collector.open(sources=frozenset({{"ranges", "memory-malloc"}}))
collector.start(profile_memory=True)
kept = bytearray({LARGE})
recording = collector.stop()
taken = [recording.memory(event) for event in range(len(recording))]
print(json.dumps([collector.problems, recording.sources, max(one.nbytes for one in taken if one)]))
"""
    problems, sources, most = answer_of(program)
    assert problems == {
        "memory-malloc": "malloc cannot be watched in this process: the program does not call it through a table "
        "of imports; ask for memory-python instead"
    }
    assert sources == ["ranges", "memory-python"]
    assert most >= LARGE


def test_doctor_says_that_malloc_can_be_watched(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("malloc ")]
    assert line.split()[1] == "ok"


def test_malloc_can_replace_tensor_memory() -> None:
    torch = pytest.importorskip("torch")
    with Window(sources=MALLOC | {"ops"}, profile_memory=True) as window:
        kept = torch.ones(LARGE // 4)
    recording = window.recording
    assert "memory-malloc" in recording.sources
    assert "memory" not in recording.sources
    names = [recording.name(event) for event in range(len(recording))]
    assert recording.self_cpu_memory[names.index("aten::empty")] >= kept.nbytes


def test_profile_has_memory_without_torch() -> None:
    program = f"""
import sys
from pytest_opprof import profile, record_function
with profile(profile_memory=True) as prof, record_function("take"):
    kept = bytearray({LARGE})
assert "torch" not in sys.modules
(row,) = [row for row in prof.key_averages() if row.key == "take"]
assert row.cpu_memory_usage > {LARGE} * 0.9
assert "CPU Mem" in prof.key_averages().table()
print('"done"')
"""
    assert answer_of(program) == "done"
