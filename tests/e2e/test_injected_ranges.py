"""NVTX ranges of libraries, in whole sessions."""

import importlib.util

import pytest
from e2e.project import Project

MARKED = """\
    import nvtx, pytest

    @pytest.mark.profile(warmup=0, active=2)
    def test_library():
        with nvtx.annotate("solve", domain="solver"):
            nvtx.mark("an instant is not an op")
"""

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nvtx") is None, reason="nvtx is not installed")


@pytest.fixture(autouse=True)
def _unarmed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NVTX_INJECTION64_PATH", "OPPROF_NVTX_ARMED"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_nvtx_ranges_are_counted_when_asked_for(project: Project) -> None:
    project.write("test_it.py", MARKED)
    session = project.pytest("--opprof-capture=ranges,nvtx")
    assert session.outcomes == {"test_library": "passed"}
    assert "NVTX ranges" in session.stdout
    test = session.result("test_library")
    assert set(test.sources) == {"ranges", "nvtx", "instructions"}
    assert {op.name: op.count.total for op in test.ops} == {"ProfilerStep*": 2, "solve": 2}


def test_nvtx_ranges_are_not_counted_unless_asked_for(project: Project) -> None:
    project.write("test_it.py", MARKED)
    assert [op.name for op in project.pytest().result("test_library").ops] == ["ProfilerStep*"]


def test_header_names_libraries_imported_too_early(project: Project) -> None:
    project.write("test_it.py", MARKED)
    project.write("early.py", "import nvtx")
    session = project.pytest("-p", "early", "--opprof-capture=ranges,nvtx", "-o", "pythonpath=.")
    assert "nvtx was imported before the NVTX collector was set up: export NVTX_INJ" in session.stdout
