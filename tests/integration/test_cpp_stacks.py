"""C++ stacks: ops and ranges of real programs know the functions that they started in."""

import ctypes
import importlib.util
import json
import multiprocessing
import re
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import EventList, FunctionEvent, profile, record_function
from pytest_opprof.autograd import profile as autograd_profile
from pytest_opprof.errors import UsageError
from pytest_opprof.traces.kineto import load_trace

CC = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler to build the library that calls back")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

Library = Any
_SYMBOL_TABLE = 2  # SHT_SYMTAB


def is_stripped(file: Path) -> bool:
    """Whether the file has no symbol table, as in distributions: only exported functions have names."""
    content = file.read_bytes()
    (sections,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    kinds = {struct.unpack_from("<I", content, sections + number * size + 4)[0] for number in range(count)}
    return _SYMBOL_TABLE not in kinds


_MAPPED = (line.split()[-1] for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines())
_INTERPRETER = Path(next((file for file in _MAPPED if "/libpython" in file), sys.executable)).resolve()
BY_EXPORTS = is_stripped(_INTERPRETER)
EVAL = "^_?PyObject_(Vectorcall|MakeTpCall|Call)" if BY_EXPORTS else "_PyEval_EvalFrameDefault"
MAIN = "Py_RunMain|main|_start" if BY_EXPORTS else "Py_RunMain|main"
CALLBACK = ctypes.CFUNCTYPE(None)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    path = tmp_path_factory.mktemp("library") / "libcalling.so"
    source = Path(__file__).with_name("calling_library.c")
    flags = ["-O2", "-fno-optimize-sibling-calls", "-shared", "-fPIC"]
    subprocess.run([str(CC), *flags, str(source), "-o", str(path)], check=True)
    return ctypes.CDLL(str(path))


def one(events: EventList, name: str) -> FunctionEvent:
    (found,) = [event for event in events if event.name == name]
    return found


def functions(event: FunctionEvent) -> list[str]:
    return [frame.function for frame in event.cpp_frames]


def in_order(found: Sequence[str], *expected: str) -> bool:
    """Whether each is found after the one before it."""
    rest = iter(found)
    return all(any(re.search(text, entry) for entry in rest) for text in expected)


def a_range(name: str) -> Callable[[], None]:
    def begin_and_end() -> None:
        with record_function(name):
            pass

    return begin_and_end


def called(library: Library, body: Callable[[], None]) -> None:
    library.library_entry(CALLBACK(body))


@needs_compiler
def test_a_range_knows_the_library_that_called_it(library: Library) -> None:
    with profile(with_stack="cpp") as prof:
        called(library, a_range("in the library"))
    event = one(prof.events(), "in the library")
    assert in_order(functions(event), EVAL, "library_kernel", "library_entry")
    kernel = next(frame for frame in event.cpp_frames if frame.function == "library_kernel")
    assert Path(kernel.module).name == "libcalling.so"
    assert f"{kernel.module}({kernel.offset:#x}): library_kernel" in event.cpp_stack
    assert event.stack == []


@needs_compiler
@pytest.mark.skipif(shutil.which("addr2line") is None, reason="binutils are not installed")
def test_offsets_work_with_addr2line(library: Library) -> None:
    with profile(with_stack="cpp") as prof:
        called(library, a_range("in the library"))
    frames = one(prof.events(), "in the library").cpp_frames
    for name in ("library_kernel", "library_entry"):
        frame = next(frame for frame in frames if frame.function == name)
        command = ["addr2line", "-f", "-e", frame.module, hex(frame.offset)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert answer.splitlines()[0] == name


@needs_compiler
@pytest.mark.parametrize(("depth", "is_whole"), [(3, True), (100, True), (1000, False)])
def test_deep_recursion_keeps_the_innermost_frames(library: Library, depth: int, is_whole: bool) -> None:
    with profile(with_stack="cpp") as prof:
        library.library_recursion(CALLBACK(a_range("deep")), depth)
        called(library, a_range("flat"))
    deep, flat = one(prof.events(), "deep"), one(prof.events(), "flat")
    met = functions(deep).count("library_recursion")
    assert (met == depth + 1) if is_whole else (200 < met < len(deep.cpp_frames) == 256)
    assert in_order(functions(flat), "library_kernel", "library_entry", "_start|clone|main")


def test_cpp_stacks_are_off_by_default() -> None:
    with profile(with_stack=True) as prof:
        a_range("outer")()
    assert one(prof.events(), "outer").cpp_stack == []
    assert one(prof.events(), "outer").stack
    with profile() as plain:
        a_range("outer")()
    assert one(plain.events(), "outer").cpp_stack == []


@needs_compiler
def test_both_kinds_stand_side_by_side(library: Library) -> None:
    with profile(with_stack="all") as prof:
        called(library, a_range("in the library"))
    event = one(prof.events(), "in the library")
    assert in_order(functions(event), "library_kernel", "library_entry")
    assert in_order(event.stack or [], "begin_and_end", "called", "test_both_kinds")


@needs_compiler
def test_each_thread_has_its_own_stack(library: Library) -> None:
    def work(number: int) -> None:
        for _ in range(50):
            library.library_recursion(CALLBACK(a_range(f"of thread {number}")), number)

    with profile(with_stack="cpp") as prof:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in range(4):
        events = [event for event in prof.events() if event.name == f"of thread {number}"]
        assert len(events) == 50
        for event in events:
            assert functions(event).count("library_recursion") == number + 1


def _record_in_child(answer: Any) -> None:
    with profile(with_stack="cpp") as prof:
        a_range("in the child")()
    answer.put(functions(one(prof.events(), "in the child")))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_unwinds_for_itself() -> None:
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    with profile(with_stack="cpp") as prof:
        a_range("before")()
        child = context.Process(target=_record_in_child, args=(answer,))
        child.start()
        found = answer.get(timeout=60)
        child.join()
        a_range("after")()
    assert child.exitcode == 0
    assert in_order(found, EVAL, MAIN)
    for name in ("before", "after"):
        assert in_order(functions(one(prof.events(), name)), EVAL)


@needs_compiler
def test_trace_has_the_functions_below_python(library: Library, tmp_path: Path) -> None:
    def body() -> None:
        called(library, a_range("in the library"))

    with profile(with_stack="all") as prof:
        body()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    trace = json.loads(path.read_text())
    assert (trace["with_stack"], trace["with_cpp_stack"]) == (1, 1)
    (event,) = [event for event in trace["traceEvents"] if event.get("name") == "in the library"]
    told = event["args"]["C++ stack"].split(";")
    assert told
    assert not any(EVAL in entry for entry in told)
    loaded = one(load_trace(path).events(), "in the library")
    assert functions(loaded) == [entry if entry != "??" else "" for entry in told]
    assert loaded.cpp_stack == told


@needs_compiler
def test_stacks_are_exported_of_either_kind(library: Library, tmp_path: Path) -> None:
    with profile(with_stack="all") as prof:
        called(library, a_range("in the library"))
    path = tmp_path / "stacks"
    prof.export_stacks(path, stacks="cpp")
    assert re.search(r"library_entry;library_kernel;.* \d+\n", path.read_text())
    prof.export_stacks(path, stacks="all")
    assert re.search(r"test_stacks_are_exported.*begin_and_end(;[^;\n]+)+ \d+\n", path.read_text())
    prof.export_stacks(path)
    assert "library_kernel" not in path.read_text()
    with pytest.raises(UsageError, match=r"use python, cpp, all \(compat='torch': only python\)"):
        prof.export_stacks(path, stacks="all", compat="torch")
    with pytest.raises(UsageError, match="not 'perl'"):
        prof.export_stacks(path, stacks="perl")  # type: ignore[arg-type]  # no such kind


def test_stacks_that_were_not_recorded_are_not_exported(tmp_path: Path) -> None:
    with profile(with_stack="cpp") as prof:
        a_range("outer")()
    prof.export_stacks(tmp_path / "stacks", stacks="cpp")
    for kind, message in {"python": "with_stack=True", "all": "with_stack='all'"}.items():
        with pytest.raises(AssertionError, match=re.escape(message)):
            prof.export_stacks(tmp_path / "stacks", stacks=kind)  # type: ignore[arg-type]  # a str


@pytest.mark.parametrize("make", [profile, autograd_profile])
def test_unknown_kind_of_stack_is_refused(make: Callable[..., object]) -> None:
    with pytest.raises(UsageError, match="'python', 'cpp' or 'all', not 'c'"):
        make(with_stack="c")


@needs_torch
def test_op_stack_has_torchs_functions() -> None:
    import torch  # only where it is installed

    x = torch.ones(4, 4, requires_grad=True)
    with profile(with_stack="all", record_shapes=True) as prof:
        (x @ x).sum().backward()
    events = prof.events()
    product = next(event for event in events if event.name == "aten::mm")
    binding = Path(torch.__file__).parent / "lib" / "libtorch_python.so"
    assert in_order(
        functions(product),
        r"at::_ops::mm::call",
        r"at::native::.*matmul",
        r"at::_ops::matmul::call",
        *([] if is_stripped(binding) else ["THPVariable_matmul"]),
        EVAL,
    )
    assert product.input_shapes == [[4, 4], [4, 4]]
    assert "libtorch" in product.cpp_stack[0]
    around = one(events, "aten::matmul")
    assert functions(product)[-len(functions(around)) + 3 :] == functions(around)[3:]
    backward = one(events, "MmBackward0")
    assert in_order(
        functions(backward), r"torch::autograd::Node::operator\(\)|torch::autograd::Engine::evaluate"
    )


@needs_torch
def test_ops_are_the_same_with_stacks_and_without() -> None:
    import torch  # only where it is installed

    x = torch.ones(4, 4, requires_grad=True)

    def names(with_stack: Any) -> list[str | None]:
        x.grad = None
        with profile(with_stack=with_stack) as prof:
            (x @ x).relu().sum().backward()
        return [event.name for event in prof.events() if not event.is_python_function]

    assert names("cpp") == names(False)
