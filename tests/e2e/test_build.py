"""Building: the contents of the wheel and the source archive, and the errors for a missing tool."""

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
from e2e.project import environment

pytestmark = pytest.mark.slow

SOURCES = ("pyproject.toml", "README.md", "LICENSE", "native", "schemas", "pytest_opprof")
SHIPPED = (
    "pytest_opprof/py.typed",
    "pytest_opprof/libopprof.so",
    "pytest_opprof/schemas/run.schema.json",
    "pytest_opprof/schemas/comparison.schema.json",
    "pytest_opprof/schemas/accepted.schema.json",
    "pytest_opprof/schemas/fleet-summary.schema.json",
    "pytest_opprof/schemas/fleet-difference.schema.json",
    "pytest_opprof/report/html/page.html.j2",
    "pytest_opprof/report/html/page.css",
    "pytest_opprof/report/html/scripts/page.js",
)
# Programs that CMake itself runs, none of them a compiler.
BUILD_TOOLS = ("cmake", "ninja", "make", "sh", "bash", "env", "uname", "cat")


@pytest.fixture
def checkout(repository: Path, tmp_path: Path) -> Path:
    """A copy of the package's sources, without earlier builds."""
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
    *,
    python: str = sys.executable,
    environment: dict[str, str] | None = None,
    settings: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    """Build without isolation, hence without a network: the dev extra has the build's requirements."""
    return subprocess.run(
        [
            python,
            "-m",
            "build",
            "--no-isolation",
            f"--{kind}",
            "--outdir",
            checkout.parent / "dist",
            *(f"-C{setting}" for setting in settings),
            checkout,
        ],
        cwd=checkout.parent,  # not in a folder that contains one named build
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def sentences(build: subprocess.CompletedProcess[str]) -> str:
    """The output, without the line ends at which CMake folds it."""
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
    built = build(checkout, "wheel", settings=("cmake.define.OP_NEWEST_PYTHON=3.10",))
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


def test_musl_installs_nothing_native(checkout: Path) -> None:
    built = build(checkout, "wheel", settings=("cmake.define.SKBUILD_SOABI=cpython-312-x86_64-linux-musl",))
    assert built.returncode == 0, built.stdout + built.stderr
    assert "this Python was built for musl: no native modules" in sentences(built)
    (wheel,) = (checkout.parent / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "pytest_opprof/schemas/run.schema.json" in names
    assert not [name for name in names if ".so" in name or "native/" in name]


def test_install_without_native_parts_stands_aside(checkout: Path, repository: Path, tmp_path: Path) -> None:
    """Without a compiler, CMake or Ninja; with runs measured by this environment's native install."""
    python = install_without_native(checkout, tmp_path / "environment")
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(repository / "examples" / "test_plain.py", work)
    (work / "pytest.ini").write_text("[pytest]\naddopts = -p opprof -p no:cacheprovider\n", encoding="utf-8")
    native = Path(sys.executable)
    asks = ("--opprof-save=main", "--opprof-json=base.json")
    told = run(native, "-m", "pytest", *asks, cwd=work)
    assert told.returncode == 0, told.stdout
    regressed = run(native, "-m", "pytest", "--opprof-json=head.json", cwd=work)
    assert regressed.returncode == 0, regressed.stdout

    aside = run(python, "-m", "pytest", "--opprof-baseline=main", "--opprof-save=next", cwd=work)
    assert aside.returncode == 0, aside.stdout + aside.stderr
    assert "2 passed, 1 skipped" in aside.stdout  # the third checks its counts
    reason = "pytest-opprof was installed with OPPROF_NATIVE=off"
    assert [line for line in aside.stdout.splitlines() if line.startswith("opprof: ")] == [
        f"opprof: nothing can be measured here: {reason} (marked tests run as plain tests, and commands on "
        "saved runs work)",
        f"opprof: not measured: {reason}; nothing was compared with main; nothing was saved as next",
    ]
    for command in (
        ("validate", "base.json", "head.json"),
        ("show", "base.json"),
        ("compare", "main", "head.json"),
        ("report", "--base", "base.json", "--head", "head.json", "--format=markdown"),
        ("baseline", "list"),
        ("history", "test_report_in_batches"),
    ):
        found, expected = (
            run(one, "-m", "pytest_opprof.cli.main", *command, cwd=work) for one in (python, native)
        )
        assert (found.returncode, found.stdout, found.stderr) == (0, expected.stdout, ""), command
    refused = run(python, "-m", "pytest_opprof.cli.main", "trace", "show", "trace.json", cwd=work)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith(f"opprof: nothing can be measured here: {reason} (")


def install_without_native(checkout: Path, folder: Path) -> Path:
    """Install the package without any program but Python, beside this environment's packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    packages = sysconfig.get_path("purelib", vars={"base": str(folder)})
    neighbours = [path for path in sys.path if path.endswith("-packages")]
    Path(packages, "neighbours.pth").write_text("\n".join(neighbours), encoding="utf-8")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed", "--quiet")
    installed = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "install", *options, checkout],
        env=os.environ | {"OPPROF_NATIVE": "off", "PATH": str(folder / "bin")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert not list(Path(packages, "pytest_opprof").rglob("*.so"))
    return python


def run(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def python_without_headers(prefix: Path) -> Path:
    """Make a prefix with this interpreter and its library, but no include folder."""
    base = Path(sys.base_prefix)
    (prefix / "bin").mkdir(parents=True)
    executable = Path(sys.executable).resolve()
    shutil.copy(executable, prefix / "bin" / executable.name)
    for folder in ("lib", "lib64"):
        if (base / folder).is_dir():
            (prefix / folder).symlink_to(base / folder)
    return prefix / "bin" / executable.name
