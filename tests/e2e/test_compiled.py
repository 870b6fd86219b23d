"""torch.compile: cold and warm caches equal one baseline, and recompiling is a failure."""

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


RECOMPILES = """\
    import pytest
    import torch

    def scaled(x, by):
        return x * by

    product = torch.compile(scaled, backend="eager", dynamic=False)
    sizes = iter(range(2, 100))

    @pytest.mark.profile(limits=["no_recompile"])
    def test_grows(): product(torch.ones(next(sizes)), 2)

    @pytest.mark.profile(limits=["no_recompile"])
    def test_stays(): product(torch.ones(1), 2)

    @pytest.mark.profile(limits=["no_recompile"])
    def test_eager(): scaled(torch.ones(1), 2)
"""
BREAKS = """\
    import pytest
    import torch

    def scaled(x):
        {statement}
        return x * 2

    @pytest.mark.profile
    def test_it():
        torch._dynamo.reset()  # else one step compiles for all
        torch.compile(scaled, backend="eager")(torch.ones(2))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("torch_installed")
def test_recompiling_step_breaks_its_limit_and_says_why(project: Project) -> None:
    project.write("pytest.ini", INI.replace("    error\n", ""))
    project.write("test_it.py", RECOMPILES)
    session = project.pytest(env={"COLUMNS": "300"})
    assert set(session.failures) == {"test_grows"}
    assert "in scaled, test_it.py: tensor 'x' size mismatch at index 0. expected 2" in session.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("torch_installed")
def test_a_graph_break_is_found_and_its_function_named(project: Project) -> None:
    project.write("pytest.ini", INI.replace("    error\n", ""))
    project.write("test_it.py", BREAKS.format(statement="pass"))
    assert project.pytest("--opprof-save=main").exit_code == 0
    assert project.pytest("--opprof-baseline=main").exit_code == 0
    project.write("test_it.py", BREAKS.format(statement="torch._dynamo.graph_break()"))
    section = project.pytest("--opprof-baseline=main", env={"COLUMNS": "300"}).failures["test_it"]
    assert section.startswith("REGRESSED")
    assert "graph breaks rose in scaled, test_it.py: Call to `torch._dynamo.graph_break()`" in section


@pytest.mark.slow
@pytest.mark.usefixtures("torch_installed")
def test_a_certificate_has_seen_the_cache_cold_and_warm(project: Project, tmp_path: Path) -> None:
    project.write("pytest.ini", INI.replace("    error\n", ""))  # warnings of torch's compiler are not ours
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


NET = """\
    import pytest
    import torch

    W = torch.ones(4, 4)

    def net(x):
        return torch.relu(x @ W) @ W

    compiled = torch.compile(net)

    @pytest.mark.profile
    def test_it(): compiled(torch.ones(4, 4))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("torch_installed")
def test_generated_code_is_not_the_users(project: Project, tmp_path: Path) -> None:
    """Its files are in the folder for temporary files; the user's line is the call."""
    (tmp_path / "temporary").mkdir()
    env = {"TMPDIR": str(tmp_path / "temporary")}
    project.write("pytest.ini", INI.replace("    error\n", ""))
    project.write("test_it.py", NET)
    for state in ("cold", "warm"):
        result = project.pytest(env=env, timeout=600).result("test_it")
        assert result.compile_cache == (state,)
        assert {place for row in result.ops for place in row.places} == {"test_it, test_it.py:12"}
        assert {name.rpartition(", ")[2] for name in result.functions["python.instructions"]} == {
            "test_it.py"
        }
