"""No text of a file, trace or name is ever executed: the package has no means to."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_opprof

PACKAGE = Path(pytest_opprof.__file__).parent
RUNS_DATA = {"eval", "exec", "compile", "__import__", "system", "popen", "getoutput", "getstatusoutput"}
RUNS_DATA |= {"source_to_code", "FunctionType"}
# Users ask these to run a program or a cell. They read no data files.
RUNS_PROGRAMS = {"profiler/program.py", "cli/magic.py"}
# pytest's evaluates `-k` expressions, which come only from the command line and the ini file.
COMPILES_NO_CODE = {"re.compile", "Expression.compile"}
# formats whose readers call functions named in the data; and code stored as data
UNPACKS_CODE = {"pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "runpy", "code"}


def problems(source: str) -> Iterator[str]:
    """Parts of a module that could execute text."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if (
                name in RUNS_DATA and ast.unparse(node.func) not in COMPILES_NO_CODE
            ):
                yield f"line {node.lineno}: {name}()"
            case ast.Import(names=names):
                roots = {alias.name.partition(".")[0] for alias in names} & UNPACKS_CODE
                yield from (f"line {node.lineno}: {root}" for root in roots)
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in UNPACKS_CODE:
                yield f"line {node.lineno}: {module}"
            case ast.keyword(arg="shell", value=value) if ast.unparse(value) != "False":
                yield f"line {node.lineno}: shell={ast.unparse(value)}"
            case ast.keyword(arg="allow_pickle", value=value) if ast.unparse(value) != "False":
                yield f"line {node.lineno}: allow_pickle={ast.unparse(value)}"


@pytest.mark.parametrize(
    "path",
    sorted(path for path in PACKAGE.rglob("*.py") if str(path.relative_to(PACKAGE)) not in RUNS_PROGRAMS),
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_no_module_executes_data(path: Path) -> None:
    assert list(problems(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)",
        "builtins.exec(text)",
        "import pickle",
        "from marshal import loads",
        "import yaml.cyaml as y",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "subprocess.run(text, shell=asked)",
        "numpy.load(file, allow_pickle=True)",
        "__import__(name)",
    ],
)
def test_each_way_to_execute_data_is_found(source: str) -> None:
    assert len(list(problems(source))) == 1
