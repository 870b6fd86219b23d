"""ITT: torch ops without a compiler, and tasks of other libraries.

Each test has its own process: libraries look for their ITT collector once, when they are first used.
"""

import importlib.util
from pathlib import Path

import pytest
from support.programs.children import answer_of, run_python
from support.programs.injected_ranges import PRELUDE, exported, unarmed

from pytest_opprof.capture.injection import ITT, library_path

UNARMED = unarmed(ITT)
EXPORTED = exported(ITT)
EMITTER_ALLOWED = {"OPPROF_TESTS_ALLOW_TORCH_PROFILER": "torch's ITT emitter is part of its profiler"}

needs_torch = pytest.mark.usefixtures("torch_with_itt")
needs_ittapi = pytest.mark.skipif(
    importlib.util.find_spec("ittapi") is None, reason="ittapi is not installed"
)


# ---- torch's ops ----

STEP = """
    import torch
    weights = torch.ones(2, requires_grad=True)
    start(SOURCE)
    with record_function("step"):
        (weights * 3).sum().backward()
    recording = collector.stop()
    torch.zeros(2)
    print(json.dumps({"sources": recording.sources, "problems": collector.problems, "rows": rows(recording, recording.scope)}))
"""


@pytest.fixture(scope="module")
def torch_with_itt() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if run_python("import torch; raise SystemExit(not torch.profiler.itt.is_available())").returncode:
        pytest.skip("this torch was built without ITT")


@needs_torch
def test_torch_ops_come_by_name() -> None:
    said = answer_of(
        PRELUDE + "\n    assert ITT.arm() is None" + STEP.replace("SOURCE", '"ops-itt"'),
        environment=UNARMED | EMITTER_ALLOWED,
    )
    assert said["sources"] == ["ranges", "ops-itt"]
    assert said["problems"] == {}
    rows = said["rows"]
    assert rows[0] == ["step", None, 1, 7]
    assert ["aten::mul", "step", 3, 0] in rows
    assert "aten::zeros" not in {name for name, *_ in rows}  # which started after the window
    wrapper = "autograd::engine::evaluate_function: MulBackward0"
    assert ["MulBackward0", wrapper, 3, 0] in rows


@pytest.mark.slow
@needs_torch
def test_variable_may_be_exported_before_python_starts() -> None:
    said = answer_of(
        PRELUDE + STEP.replace("SOURCE", '"ops-itt"'),
        environment=EXPORTED | EMITTER_ALLOWED,
    )
    assert said["sources"] == ["ranges", "ops-itt"]
    assert ["aten::mul", "step", 3, 0] in said["rows"]


@pytest.mark.slow
@needs_torch
def test_itt_takes_over_without_a_compiler(tmp_path: Path) -> None:
    said = answer_of(
        PRELUDE + "\n    assert ITT.arm() is None" + STEP.replace("SOURCE", '"ops"'),
        environment=UNARMED
        | EMITTER_ALLOWED
        | {"CXX": "/no/such/compiler", "OPPROF_CACHE_DIR": str(tmp_path)}
        | no_kept_observer(tmp_path),
    )
    assert said["sources"] == ["ranges", "ops-itt"]
    assert said["problems"] == {}
    assert ["aten::mul", "step", 3, 0] in said["rows"]


@pytest.mark.slow
@needs_torch
def test_reasons_are_given_without_compiler_and_itt(tmp_path: Path) -> None:
    said = answer_of(
        PRELUDE + STEP.replace("SOURCE", '"ops"'),
        environment=UNARMED
        | {"CXX": "/no/such/compiler", "OPPROF_CACHE_DIR": str(tmp_path)}
        | no_kept_observer(tmp_path),
    )
    assert said["sources"] == ["ranges"]
    assert said["rows"] == [["step", None, 1, 7]]
    problem = said["problems"]["ops"]
    assert problem.startswith("no C++ compiler was found to build the torch observer")
    assert f"export INTEL_LIBITTNOTIFY64={library_path()} before pytest starts" in problem


def no_kept_observer(folder: Path) -> dict[str, str | None]:
    """An environment in which no folder holds an observer of an earlier test."""
    return {"HOME": str(folder / "home"), "XDG_CACHE_HOME": None, "TMPDIR": str(folder)}


# ---- arming ----


@pytest.mark.slow
@needs_torch
def test_arming_after_torch_is_too_late() -> None:
    said = answer_of(
        PRELUDE + "\n    import torch\n    print(json.dumps([ITT.arm(), ITT.is_armed]))",
        environment=UNARMED,
    )
    reason, armed = said
    assert reason.startswith("torch was imported before the ITT collector was set up: export INTEL_LIB")
    assert armed is False


def test_collector_of_another_tool_stays() -> None:
    said = answer_of(
        PRELUDE + "\n    print(json.dumps([ITT.arm(), ITT.is_armed]))",
        environment=UNARMED | {"INTEL_LIBITTNOTIFY64": "/opt/vtune/lib.so"},
    )
    assert said == [
        "another tool collects ITT: INTEL_LIBITTNOTIFY64=/opt/vtune/lib.so",
        False,
    ]


def test_arming_twice_is_arming_once() -> None:
    said = answer_of(
        PRELUDE + "\n    print(json.dumps([ITT.arm(), ITT.arm(), ITT.is_armed]))", environment=UNARMED
    )
    assert said == [None, None, True]


# ---- other libraries ----


@needs_ittapi
def test_tasks_of_other_libraries_are_ranges() -> None:
    said = answer_of(
        PRELUDE
        + """
    assert ITT.arm() is None
    import ittapi

    start("itt")
    with ittapi.task("outer"):
        with record_function("ours"):
            with ittapi.task("日本 inner", domain="another domain"):
                pass

    def work():
        with ittapi.task("on a thread"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    recording = collector.stop()
    with ittapi.task("after"):
        pass
    print(json.dumps([recording.sources, rows(recording, recording.scope)]))
    """,
        environment=UNARMED,
    )
    assert said == [
        ["ranges", "itt"],
        [
            ["outer", None, 3, 7],
            ["ours", "outer", 1, 7],
            ["日本 inner", "ours", 3, 7],
            ["on a thread", None, 3, 7],
        ],
    ]


@needs_ittapi
def test_tasks_may_cross_window_edges() -> None:
    said = answer_of(
        PRELUDE
        + """
    assert ITT.arm() is None
    import ittapi

    early, late = ittapi.task("early"), ittapi.task("late")
    early.begin()
    start("itt")
    early.end()
    late.begin()
    recording = collector.stop()
    late.end()
    late.end()  # one more than began
    print(json.dumps([rows(recording, recording.scope), list(recording.duration_ns)]))
    """,
        environment=UNARMED,
    )
    assert said == [[["late", None, 3, 7]], [-1]]


@needs_ittapi
def test_library_does_nothing_without_a_recording() -> None:
    """The variable reaches child processes that never import us."""
    done = run_python(
        """
    import ittapi, sys
    for number in range(1000):
        with ittapi.task(f"task {number}"):
            pass
    assert not any(name.startswith("pytest_opprof") for name in sys.modules)
    """,
        environment=EXPORTED,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
