"""Recording in sub-interpreters and free-threaded builds is refused; tests may run sub-interpreters."""

import importlib
import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import run_python

from pytest_opprof import _fast
from pytest_opprof.capture.injection import library_path

# The module's private names before Python 3.14.
PRELUDE = """
    import sys

    def own(**options):
        try:
            import _interpreters as made
            return made, made.create(*options.values())
        except ImportError:
            import _xxsubinterpreters as made
            return made, made.create(isolated=options["kind"] == "isolated")
"""
REFUSED = (
    "pytest-opprof records in the main interpreter only, and this is a sub-interpreter: import it there "
    "before creating this one"
)
KINDS = ["legacy", "isolated"]


@pytest.fixture
def interpreters() -> Any:
    """Skip without sub-interpreters."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    pytest.skip("this Python makes no sub-interpreters")


# by the module's file, because an editable install would rebuild itself there
LOADS = """
import importlib.machinery, importlib.util
loader = importlib.machinery.ExtensionFileLoader("pytest_opprof._fast", {path!r})
try:
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("pytest_opprof._fast", loader))
    loader.exec_module(module)
except ImportError as error:
    print(error)
"""
IMPORTS = """
try:
    import pytest_opprof
    pytest_opprof.record_function
except ImportError as error:
    print(error)
"""


@pytest.mark.usefixtures("interpreters")
@pytest.mark.parametrize(
    ("kind", "program"),
    [("legacy", LOADS), ("isolated", LOADS), ("legacy", IMPORTS)],
    ids=["legacy", "isolated", "the whole package"],
)
def test_recording_in_a_sub_interpreter_is_refused(kind: str, program: str) -> None:
    done = run_python(
        PRELUDE
        + f"""
    made, number = own(kind={kind!r})
    made.run_string(number, {program.format(path=_fast.__file__)!r})
    made.destroy(number)
    """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{REFUSED}\n"


@pytest.mark.usefixtures("interpreters")
@pytest.mark.parametrize("kind", KINDS)
def test_window_continues_around_a_sub_interpreter(kind: str) -> None:
    done = run_python(
        PRELUDE
        + f"""
    import json
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector

    def called():
        pass

    collector = Collector.instance()
    collector.open(sources=frozenset({{"ranges", "python"}}))
    collector.start()
    with record_function("around"):
        made, number = own(kind={kind!r})
        made.run_string(number, "def inside(): pass\\nfor _ in range(100): inside()")
        made.destroy(number)
        called()
    recording = collector.stop()
    names = [recording.name(event) for event in range(len(recording))]
    print(json.dumps(["around" in names, sum("called" in name for name in names), collector.lapses]))
    """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [True, 1, {}]


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its headers mean something else by Py_GIL_DISABLED")
def test_free_threaded_build_is_refused(repository: Path, tmp_path: Path) -> None:
    """The module as built for one; no such Python is needed to see its message."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    native, library = repository / "native", library_path().parent
    parts = [
        "fast",
        "pycall",
        "pydecorated",
        "pyinstructions",
        "pymem",
        "pyname",
        "module_state",
        "op_inputs",
        "pyop",
        "pypush",
        "pyrange",
        "pysite",
        "range_parts",
    ]
    built = tmp_path / Path(_fast.__file__).name
    command = [
        *(compiler, "-std=c11", "-D_GNU_SOURCE", "-DPy_GIL_DISABLED", "-shared", "-fPIC"),
        *(f"-I{folder}" for folder in (native / "include", native / "src", sysconfig.get_path("include"))),
        *(str(native / "src" / "python" / f"{part}.c") for part in parts),
        *("-o", str(built), f"-L{library}", "-l:libopprof.so", f"-Wl,-rpath,{library}"),
    ]
    subprocess.run(command, check=True)
    done = run_python(LOADS.format(path=str(built)))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "pytest-opprof needs Python's global interpreter lock, and this Python is a free-threaded build: "
        "run it with another, such as python3.13 instead of python3.13t\n"
    )
