"""Ranges emitted for other tools: a tool of our own logs what it receives.

Each program is a separate process, because a tool is looked for once.
"""

import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.children import answer_of, run_python

from pytest_opprof.capture.injection import library_path

CC = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler to build the listening tool")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

VARIABLES = {"itt": "INTEL_LIBITTNOTIFY64", "nvtx": "NVTX_INJECTION64_PATH"}
each = pytest.mark.parametrize("interface", VARIABLES)
Heard = list[tuple[str, str]]
Listen = Callable[..., Heard]


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The listening tool, in both protocols."""
    folder = tmp_path_factory.mktemp("tools")
    source, deaf = str(Path(__file__).with_name("listening_tool.c")), str(folder / "deaf.c")
    Path(deaf).write_text("int nothing_of_a_tool;\n")
    built = {}
    for name, parts in {"new": [source], "old": ["-DOLDER_PROTOCOL", source], "deaf": [deaf]}.items():
        built[name] = folder / f"{name}.so"
        subprocess.run([str(CC), "-shared", "-fPIC", "-w", *parts, "-o", str(built[name])], check=True)
    return built


@pytest.fixture
def listen(tools: dict[str, Path], tmp_path: Path) -> Listen:
    """Run a program with the tool; return the log of each thread."""

    def run(program: str, *, tool: str = "new", **more: str) -> Heard:
        log = tmp_path / "heard"
        environment: dict[str, str | None] = {
            **dict.fromkeys(VARIABLES.values(), str(tools[tool])),
            "LISTENING_TOOL_LOG": str(log),
            **more,
        }
        done = run_python(program, environment=environment)
        assert (done.returncode, done.stderr) == (0, "")
        lines = [line.split("\t") for line in log.read_text().splitlines()]
        threads = list(dict.fromkeys(thread for thread, *_ in lines))
        return [(what, text) for each in threads for thread, what, text in lines if thread == each]

    return run


def begun(heard: Heard) -> list[str]:
    """The names of the ranges, which must all have ended."""
    begins = [text for what, text in heard if what == "begin"]
    assert len(begins) == sum(what == "end" for what, _ in heard)
    return begins


# ---- our own ranges, without torch ----

OWN_RANGES = """
    from pytest_opprof import emit_{interface}, range_pop, range_push, record_function

    @record_function("decorated")
    def work():
        pass

    with record_function("before"):
        pass
    with emit_{interface}():
        with record_function("outer é"):
            range_push("pushed")
            work()
            range_pop()
    with record_function("after"):
        pass
"""


@each
@pytest.mark.parametrize("tool", ["new", "old"])
def test_own_ranges_reach_the_tool(listen: Listen, interface: str, tool: str) -> None:
    heard = listen(OWN_RANGES.format(interface=interface), tool=tool)
    steps = [(what, text if what == "begin" else "") for what, text in heard if what != "domain"]
    assert steps == [
        ("begin", "outer é"),
        ("begin", "pushed"),
        ("begin", "decorated"),
        ("end", ""),
        ("end", ""),
        ("end", ""),
    ]


def test_ranges_of_all_threads_are_emitted(listen: Listen) -> None:
    heard = listen("""
        import threading
        from pytest_opprof import emit_nvtx, record_function

        def work():
            for number in range(100):
                with record_function(f"range {number}"):
                    pass

        with emit_nvtx():
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    """)
    assert begun(heard) == [f"range {number}" for number in range(100)] * 4


def test_range_handed_to_another_thread_keeps_both_stacks(listen: Listen) -> None:
    """A tool's stack is per thread: a pop there would end another range."""
    heard = listen("""
        import threading
        from pytest_opprof import emit_itt, record_function

        def end_it():
            with record_function("on the other thread"):
                handed.__exit__(None, None, None)

        with emit_itt():
            handed = record_function("handed")
            handed.__enter__()
            thread = threading.Thread(target=end_it)
            thread.start()
            thread.join()
    """)
    assert heard[1:] == [("begin", "handed"), ("begin", "on the other thread"), ("end", "PyTorch")]


@each
def test_context_managers_are_not_reentrant(listen: Listen, interface: str) -> None:
    heard = listen(f"""
        from pytest_opprof import emit_{interface}, record_function

        emitter = emit_{interface}()
        with emitter, record_function("first"):
            try:
                emitter.__enter__()
            except RuntimeError as error:
                assert str(error) == "{interface.upper()} annotation context manager is not reentrant"
            else:
                raise SystemExit("it is")
        with emit_{interface}():
            with emit_{interface}(), record_function("nested"):
                pass
            with record_function("still emitted"):
                pass
        assert emit_{interface}(False).__enter__() is None
        with emit_{interface}(enabled=False), record_function("disabled"):
            pass
    """)
    assert begun(heard) == ["first", "nested", "still emitted"]


UNHEARD = """
    import json, warnings
    from pytest_opprof import emit_{interface}, record_function

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with emit_{interface}(), record_function("unheard"):
            pass
    print(json.dumps([str(warning.message) for warning in caught]))
"""


@each
def test_without_a_tool_a_warning_names_the_variable(interface: str) -> None:
    said = answer_of(
        UNHEARD.format(interface=interface),
        environment=dict.fromkeys(VARIABLES.values()),
    )
    assert said == [f"nothing is emitted: no tool is listening: set {VARIABLES[interface]} to its library"]


@each
@pytest.mark.parametrize("tool", ["deaf", "missing"])
def test_invalid_tool_is_reported(interface: str, tool: str, tools: dict[str, Path]) -> None:
    path = str(tools.get(tool, "/no/such/tool.so"))
    (said,) = answer_of(
        UNHEARD.format(interface=interface),
        environment={VARIABLES[interface]: path},
    )
    why = "is not a usable tool" if tool == "deaf" else "cannot be loaded"
    assert f"{VARIABLES[interface]} names {path}, which {why}" in said


# ---- the itt module ----


def test_itt_module_pushes_pops_and_marks(listen: Listen) -> None:
    heard = listen("""
        from pytest_opprof import itt

        assert itt.is_available()
        assert (itt.range_push("outer"), itt.range_push("inner")) == (0, 1)
        itt.mark("here")
        assert (itt.range_pop(), itt.range_pop(), itt.range_pop()) == (1, 0, -1)
        with itt.range("epoch {} of {total}", 3, total=7):
            assert itt.range_push("nested") == 1
            itt.range_pop()

        @itt.range("function")
        def work():
            raise KeyError

        for _ in range(2):
            try:
                work()
            except KeyError:
                pass
    """)
    assert heard[0] == ("domain", "PyTorch")
    assert ("mark", "here") in heard
    assert begun(heard) == ["outer", "inner", "epoch 3 of 7", "nested", "function", "function"]


def test_itt_module_without_a_tool_does_nothing() -> None:
    said = answer_of(
        """
        import json
        from pytest_opprof import itt

        found = [itt.is_available(), itt.range_push("a"), itt.range_push("b"), itt.range_pop()]
        itt.mark("unheard")
        print(json.dumps(found))
        """,
        environment=dict.fromkeys(VARIABLES.values()),
    )
    assert said == [False, 0, 1, 1]


def test_our_collector_records_emitted_ranges() -> None:
    said = answer_of(
        """
        import json
        from pytest_opprof import itt
        from pytest_opprof.capture.collector import Collector

        collector = Collector.instance()
        collector.open(sources=frozenset({"ranges", "ops-itt"}))
        collector.start()
        with itt.range("heard"):
            pass
        recording = collector.stop()
        print(json.dumps([recording.name(event) for event in range(len(recording))]))
        """,
        environment={"INTEL_LIBITTNOTIFY64": str(library_path())},
    )
    assert said == []  # no domain of torch: it was not requested


# ---- torch's ops ----

TORCH_STEP = """
    import torch
    from pytest_opprof import emit_itt, emit_nvtx

    x = torch.ones(2, 3, requires_grad=True)
    y = torch.ones(2, 3, requires_grad=True)

    def step():
        torch.cat([x * y, x]).sum().backward()

    for _ in range(3):
        step()
"""


@pytest.mark.slow
@needs_torch
def test_nvtx_names_match_the_documentation(listen: Listen) -> None:
    names = begun(
        listen(
            TORCH_STEP
            + """
    with emit_nvtx(record_shapes=True):
        step()
    step()
    """
        )
    )
    mul, cat = names[:2]
    number = int(mul.partition("seq = ")[2].partition(",")[0])
    first = int(mul.partition("op_id = ")[2].partition(",")[0])
    inputs = "sizes = [[2, 3], [2, 3]], input_op_ids = [(0,-1), (0,-1)]"
    assert mul == f"aten::mul, seq = {number}, op_id = {first}, {inputs}"
    assert cat == (
        f"aten::cat, seq = {number + 1}, op_id = {first + 1}, sizes = [[2, 3], [2, 3], []], "
        f"input_op_ids = [({first},0), (0,-1), (0,0)]"
    )
    assert any(name.startswith(f"CatBackward0, stashed seq = {number + 1}, op_id = ") for name in names)
    assert any(name.startswith(f"MulBackward0, stashed seq = {number}, op_id = ") for name in names)


@pytest.mark.slow
@needs_torch
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("", ["aten::mul, seq = N, op_id = N", "CatBackward0, stashed seq = N, op_id = N"]),
        ('compat="torch"', ["aten::mul, seq = N, op_id = N", "CatBackward0, seq = N, op_id = N"]),
    ],
)
def test_nvtx_numbers_forward_and_backward(listen: Listen, arguments: str, shown: list[str]) -> None:
    names = begun(listen(TORCH_STEP + f"    with emit_nvtx({arguments}):\n        step()\n"))
    anonymous = ["".join("N" if part.isdigit() else part for part in split_numbers(name)) for name in names]
    assert set(shown) <= set(anonymous)


def split_numbers(name: str) -> list[str]:
    """A name in pieces: each is a number after ``= `` or the text between."""
    pieces = []
    for piece in name.split("= "):
        head, comma, rest = piece.partition(",")
        pieces += [head, comma + rest, "= "]
    return pieces[:-1]


@needs_torch
@pytest.mark.slow
def test_itt_shows_sizes_when_asked(listen: Listen) -> None:
    names = begun(listen(TORCH_STEP + "    with emit_itt(record_shapes=True):\n        step()\n"))
    assert "aten::cat, sizes = [[2, 3], [2, 3], []]" in names
    assert "CatBackward0, sizes = [[4, 3]]" in names
    assert not any("seq" in name for name in names)


@pytest.mark.slow
@needs_torch
def test_producers_are_of_living_tensors(listen: Listen) -> None:
    """A tensor at a reused address must not get the earlier tensor's producer."""
    names = begun(
        listen("""
        import torch
        from pytest_opprof import emit_nvtx

        x = torch.ones(2)
        with emit_nvtx(record_shapes=True):
            for _ in range(1500):
                torch.neg(x)
                torch.abs(torch.from_dlpack(x))  # made by no op
    """)
    )
    found = [name.partition("input_op_ids = ")[2] for name in names if name.startswith("aten::abs,")]
    assert len(found) >= 1500
    assert all(ids.startswith("[(0,-1)") for ids in found)


@pytest.mark.slow
@needs_torch
def test_torch_ops_without_a_compiler_are_refused(listen: Listen, tmp_path: Path) -> None:
    listen(
        """
        import os
        import torch
        from pytest_opprof import emit_itt, record_function
        from pytest_opprof.errors import CaptureUnavailableError

        try:
            emit_itt().__enter__()
        except CaptureUnavailableError as error:
            assert "no C++ compiler was found to build the torch emitter" in str(error)
        else:
            raise SystemExit("it was built")
        with record_function("nothing is emitted after the refusal"):
            pass
        open(os.environ["LISTENING_TOOL_LOG"], "a").close()
        """,
        CXX="/no/such/compiler",
        OPPROF_CACHE_DIR=str(tmp_path),
        HOME=str(tmp_path),
        TMPDIR=str(tmp_path),
        XDG_CACHE_HOME=str(tmp_path),
    )
