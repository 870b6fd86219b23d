"""What a user sees of each verdict in 80 columns, as whole text: `screens/VERDICT.txt`.

`OPPROF_SCREENS=write` writes the screens of today, for a review of their diff.
"""

import os
import re
from pathlib import Path

import pytest
from e2e.conftest import MakeProject
from e2e.project import INI, Project, Session

from pytest_opprof.compare.verdicts import Verdict

SCREENS = Path(__file__).parent / "screens"
WORK = """\
    from pytest_opprof import record_function

    def load(rows):
        for _ in range(rows):
            with record_function("parse"):
                pass

    def save(rows):
        for _ in range(rows):
            with record_function("write"):
                pass
"""
TESTS = """\
    import pytest
    from work import load, save

    pytestmark = pytest.mark.profile(warmup=1, active=3)

    def test_{name}():
        load(4)
        save(2)
"""
MORE = ("load(4)", "load(4)\n    load(3)")
ONCE = ("load(4)", "load(4)\n    __import__('os').mkdir('made')")
OFTEN = ("load(4)", "load(4)\n    CALLS.append(0)\n    load(len(CALLS))")
EDITS: dict[Verdict, tuple[tuple[str, str], ...]] = {
    Verdict.ERROR: (ONCE,),
    Verdict.REGRESSED: (MORE,),
    Verdict.MISSING: (("def test_missing", "def test_renamed"),),
    Verdict.INCONCLUSIVE: (OFTEN, ("\ndef test", "\nCALLS = []\n\n\ndef test")),
    Verdict.ACCEPTED: (MORE,),
    Verdict.CHANGED: (("save(2)", "save(0)\n    load(2)"),),
    Verdict.IMPROVED: (("load(4)", "load(1)"),),
    Verdict.NEW: (("save(2)", "save(2)\n\n\ndef test_added():\n    load(1)"),),
    Verdict.PASS: (),
}
# Parts that differ between runs: times, the commit, the machine.
VARYING = (
    (r"\d+(?:\.\d+)? (?:ns|µs|ms|s)\b", "TIME"),
    (r"=+ (.*) in \d+\.\d+s =+", r"= \1 in TIME ="),
    (r"^- generated xml file: .*\n", ""),
    (r"main@[0-9a-f]{7}(\+dirty)?", "main@COMMIT"),
    (r"^platform .*\n(?:.*\n)*?(?=opprof )", ""),
    (r"(?m)^opprof \d.*$", "opprof HEADER"),
    (r"-[0-9a-f]{12}(?=\.\{)", "-DIGEST"),
)


def screen(session: Session) -> str:
    """The session's output, without parts that differ between runs."""
    text = "\n".join(line.rstrip() for line in session.stdout.splitlines())
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return f"{text}\nexit code: {int(session.exit_code)}\n"


@pytest.fixture(scope="module")
def saved(make_project: MakeProject) -> Project:
    project = make_project("screens")
    # Counts depend on the version of Python.
    project.write("pytest.ini", INI + "opprof_instructions = off\n")
    project.write("work.py", WORK)
    for verdict in Verdict:
        project.write(f"test_{verdict}.py", TESTS.format(name=verdict))
    project.git("init", "-q", "-b", "main")
    project.commit()
    assert project.pytest("--opprof-save=main").exit_code == 0
    for verdict, edits in EDITS.items():
        for old, new in edits:
            project.replace(f"test_{verdict}.py", old, new)
    return project


def test_each_verdict_has_a_screen() -> None:
    assert EDITS.keys() == set(Verdict)


@pytest.mark.parametrize("verdict", list(Verdict), ids=str)
def test_screen_matches_at_80_columns(saved: Project, verdict: Verdict) -> None:
    def compared() -> Session:
        options = ("-p", "no:randomly", "--opprof-baseline=main")
        return saved.pytest(*options, f"test_{verdict}.py", env={"COLUMNS": "80"}, writes_run=False)

    session = compared()
    if verdict is Verdict.ACCEPTED:
        saved.python("-m", "pytest_opprof", "accept", "--all", "--reason", "rows are checked twice")
        session = compared()
    found, path = screen(session), SCREENS / f"{verdict}.txt"
    if os.environ.get("OPPROF_SCREENS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
    # pytest does not wrap warnings and exit reasons.
    lines = [line for line in found.splitlines() if not line.startswith(("opprof: ", "! "))]
    assert max(map(len, lines)) <= 80
