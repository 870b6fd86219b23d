"""Building: what the wheel and the source archive hold, and what is said where a tool is missing."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SOURCES = ("pyproject.toml", "README.md", "LICENSE", "native", "schemas", "pytest_opprof")
SHIPPED = (
    "pytest_opprof/py.typed",
    "pytest_opprof/libopprof.so",
    "pytest_opprof/schemas/run.schema.json",
    "pytest_opprof/schemas/comparison.schema.json",
    "pytest_opprof/schemas/accepted.schema.json",
    "pytest_opprof/report/html/page.html.j2",
    "pytest_opprof/report/html/page.css",
    "pytest_opprof/report/html/scripts/page.js",
)
# What CMake itself runs; a compiler is not among them.
BUILD_TOOLS = ("cmake", "ninja", "make", "sh", "bash", "env", "uname", "cat")


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """A copy of what the package is built from, with no build of an earlier time in it."""
    copy = tmp_path / "checkout"
    copy.mkdir()
    for name in SOURCES:
        source = repository / name
        if source.is_dir():
            shutil.copytree(
                source, copy / name, symlinks=True, ignore=shutil.ignore_patterns("*.so", "__pycache__")
            )
        else:
            shutil.copy(source, copy / name)
    return copy


def build(
    checkout: Path,
    kind: str,
    *settings: str,
    python: str = sys.executable,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Builds without isolation, so without a network: the dev extra has the build's requirements."""
    return subprocess.run(
        [
            python,
            "-m",
            "build",
            "--no-isolation",
            f"--{kind}",
            *settings,
            "--outdir",
            checkout.parent / "dist",
            checkout,
        ],
        cwd=checkout.parent,  # not where a folder named build is
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def sentences(build: subprocess.CompletedProcess[str]) -> str:
    """What was printed, without the line ends that CMake folds it at."""
    return " ".join((build.stdout + build.stderr).split())


def test_wheel_carries_schemas_and_native_parts(checkout: Path) -> None:
    built = build(checkout, "wheel")
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (checkout.parent / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert names >= {*SHIPPED, f"pytest_opprof/_collector{suffix}", f"pytest_opprof/_fast{suffix}"}
    assert {name.split("/")[0] for name in names} == {
        "pytest_opprof",
        wheel.name.split("-cp")[0] + ".dist-info",
    }


def test_source_archive_builds_a_wheel(checkout: Path) -> None:
    packed = build(checkout, "sdist")
    assert packed.returncode == 0, packed.stdout + packed.stderr
    (archive,) = (checkout.parent / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(checkout.parent / "unpacked", filter="data")
    (unpacked,) = (checkout.parent / "unpacked").iterdir()
    assert not (unpacked / "pytest_opprof" / "schemas").is_symlink()
    built = build(unpacked, "wheel")
    assert built.returncode == 0, built.stdout + built.stderr


def test_no_compiler_names_the_package(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in BUILD_TOOLS:
        found = shutil.which(name)
        if found is not None:
            (tools / name).symlink_to(Path(found).resolve() if name != "cmake" else found)
    built = build(checkout, "wheel", environment={"PATH": str(tools), "CC": ""})
    assert built.returncode != 0
    assert sentences(built).count("no C compiler was found: install one") == 1
    assert "build-essential" in sentences(built)


def test_no_python_headers_name_the_package(checkout: Path, tmp_path: Path) -> None:
    python = python_without_headers(tmp_path / "prefix")
    packages = os.pathsep.join(filter(None, [*sys.path[1:], os.environ.get("PYTHONPATH", "")]))
    built = build(checkout, "wheel", python=str(python), environment={"PYTHONPATH": packages})
    assert built.returncode != 0
    assert sentences(built).count("no Python.h was found: install them") == 1
    assert "python3-dev" in sentences(built)


def test_python_that_is_too_new_is_one_sentence(checkout: Path) -> None:
    built = build(checkout, "wheel", "-Ccmake.define.OP_NEWEST_PYTHON=3.10")
    assert built.returncode != 0
    assert sentences(built).count("supports Python 3.11 to 3.10, and this is") == 1
    assert "Building C object" not in sentences(built)


def test_pip_and_cmake_know_the_same_pythons(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    (limit,) = re.findall(r"<3\.(\d+)$", project["requires-python"])
    newest = f"3.{int(limit) - 1}"
    assert f"set(OP_NEWEST_PYTHON {newest} " in (repository / "native" / "CMakeLists.txt").read_text()
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if " :: Python :: 3." in line]
    assert named == [f"3.{minor}" for minor in range(11, int(limit))]


def python_without_headers(prefix: Path) -> Path:
    """Makes a prefix that holds this interpreter and its library, but no include folder."""
    base = Path(sys.base_prefix)
    (prefix / "bin").mkdir(parents=True)
    executable = Path(sys.executable).resolve()
    shutil.copy(executable, prefix / "bin" / executable.name)
    for folder in ("lib", "lib64"):
        if (base / folder).is_dir():
            (prefix / folder).symlink_to(base / folder)
    return prefix / "bin" / executable.name
