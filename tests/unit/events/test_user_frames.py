"""Lines of the user's own code, and the lines that they were called from."""

from pathlib import Path

from pytest_opprof.capture.call_sites import CalledFrom, CallSite
from pytest_opprof.events.user_frames import callers_of_places


def test_callers_are_linked_over_a_file_that_is_gone(tmp_path: Path) -> None:
    """A template's generated module is removed once it was imported."""
    (tmp_path / "model.py").write_text("x\ny\n")
    outer = CallSite(str(tmp_path / "model.py"), "outer", 2)
    generated = CallSite(str(tmp_path / "gone.py"), "render", 1, outer)
    inner = CallSite(str(tmp_path / "model.py"), "inner", 1, generated)
    calls = CalledFrom("aten::mul", inner, calls=3, nbytes=0, nodes=0, flops=0, retained=0)
    ((place, callers),) = callers_of_places([calls]).items()
    assert place.name.startswith("inner, ")
    assert [(caller.name.partition(", ")[0], many) for caller, many in callers.items()] == [("outer", 3)]
