"""torch.compile: the first process makes code, the second finds it, and both are the same to a baseline."""

from pathlib import Path

import pytest
from e2e.project import INI, Project

from pytest_opprof.results.files import read_run

TEST = """\
    import pytest
    import torch

    product = torch.compile(lambda x: x * 2 + 1)

    @pytest.mark.profile
    def test_compiled(): product(torch.ones(4))

    @pytest.mark.profile
    def test_eager(): torch.ones(4) * 2
"""


@pytest.mark.slow
@pytest.mark.usefixtures("torch_installed")
def test_a_certificate_has_seen_the_cache_cold_and_warm(project: Project, tmp_path: Path) -> None:
    project.write("pytest.ini", INI.replace("    error\n", ""))  # what torch's compiler warns of is its own
    project.write("test_it.py", TEST)
    env = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    assert project.pytest("--opprof-save=main", env=env).exit_code == 0
    (path,) = project.stored()
    states = {test.node_id.partition("::")[2]: test.compile_cache for test in read_run(path).tests}
    assert states == {"test_compiled": ("cold", "warm"), "test_eager": ()}
    later = project.pytest("--opprof-baseline=main", env=env)
    assert later.exit_code == 0
    assert later.result("test_compiled").compile_cache == ("warm",)
    elsewhere = project.pytest(
        "--opprof-baseline=main", env={"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "new")}
    )
    assert elsewhere.exit_code == 0
    assert elsewhere.result("test_compiled").compile_cache == ("cold",)
