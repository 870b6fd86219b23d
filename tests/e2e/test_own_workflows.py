"""The job that tries the wheel, in a clone of this repository, with this environment's packages."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from e2e.project import environment
from support.forges.workflow_steps import REPOSITORY, Runner, jobs

pytestmark = pytest.mark.slow

CI = REPOSITORY / ".github" / "workflows" / "ci.yml"
# A new environment sees this one's packages; no index is asked.
PYTHON = """\
#!/bin/sh
case "$1 $2" in
"-m venv") "{python}" -m venv "$3" && echo "{packages}" > "$3/lib/python{version}/site-packages/here.pth" ;;
"-m build") shift 2; exec "{python}" -m build --no-isolation "$@" ;;
*) exec "{python}" "$@" ;;
esac
"""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner with a clone of the last commit."""
    clone, temporary, shims = tmp_path / "clone", tmp_path / "temporary", tmp_path / "bin"
    for folder in (temporary, shims):
        folder.mkdir()
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], env=environment(), check=True)
    shim = shims / "python"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    packages = sysconfig.get_path("purelib")
    shim.write_text(
        PYTHON.format(python=sys.executable, packages=packages, version=version), encoding="utf-8"
    )
    shim.chmod(0o755)
    tools = Path(sys.executable).parent  # cmake and ninja, if the machine has none
    path = os.pathsep.join([str(shims), os.environ.get("PATH", ""), str(tools)])
    variables = environment({"PATH": path, "PIP_NO_INDEX": "1"})
    # A separate project sees all plugins, as a user's does.
    del variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
    return Runner(folder=clone, temporary=temporary, variables=variables)


def test_the_wheel_that_is_built_works_where_it_is_installed(runner: Runner) -> None:
    runner.steps(jobs(CI)["wheel"]["steps"])
    assert runner.failed is None
    names = sorted(path.name.partition("-0")[0] for path in (runner.folder / "dist").iterdir())
    assert names == ["pytest_opprof", "pytest_opprof"], "an sdist and a wheel"
    assert "opprof: saved" in runner.printed
    assert "regressed" not in runner.printed
