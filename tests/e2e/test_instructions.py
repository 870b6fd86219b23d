"""Plain Python work that no op shows: slower code fails its test, and the function that grew is named."""

import textwrap

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session
from e2e.slower_code import SLOWER, TESTS

WIDE = {"COLUMNS": "300"}


def saved(project: Project, modules: dict[str, str], tests: str) -> None:
    """The project with a baseline."""
    for name, text in modules.items():
        project.write(f"{name}.py", text)
    project.write("test_it.py", textwrap.dedent(tests))
    assert project.pytest("--opprof-save=main").exit_code == 0


def compared(project: Project) -> Session:
    """The output of a later session."""
    return project.pytest("--opprof-baseline=main", "-v", env=WIDE)


@pytest.fixture(scope="module")
def slower(make_project: MakeProject) -> Session:
    """All kinds of slow-down in one session."""
    project = make_project("slower")
    before = {kind: before for kind, (before, _, _) in SLOWER.items()}
    saved(project, before, TESTS.format(kinds=list(SLOWER)))
    for kind, (_, after, _) in SLOWER.items():
        project.write(f"{kind}.py", after)
    return compared(project)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind, (_, _, function) in SLOWER.items() if function])
def test_slower_code_fails_and_its_function_is_named(slower: Session, kind: str) -> None:
    section = slower.failures[f"test_kind[{kind}]"]
    assert "REGRESSED" in section
    assert f"instructions rose in {SLOWER[kind][2]}" in section


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind, (_, _, function) in SLOWER.items() if not function])
def test_loops_in_c_are_not_seen(slower: Session, kind: str) -> None:
    assert f"test_kind[{kind}]" not in slower.failures


@pytest.mark.slow
def test_harmless_edits_change_nothing(make_project: MakeProject) -> None:
    project = make_project("harmless")
    before = (
        "def helper(value):\n    return value + 1\ndef work():\n    return [helper(i) for i in range(90)]\n"
    )
    moved = "def helper(number):\n    '''Add one.'''\n    return number + 1\n"
    after = (
        "# A comment.\nfrom other import helper\n\ndef work():\n    return [helper(k) for k in range(90)]\n"
    )
    saved(project, {"code_of": before, "other": ""}, TESTS.format(kinds=["code_of"]))
    project.write("other.py", moved)
    project.write("code_of.py", after)
    session = compared(project)
    assert session.exit_code == 0
    assert "1 passed" in session.stdout
    assert "CHANGED" not in session.stdout


CALLED = """\
    def total(values):
        found = 0
        for value in values:
            found += value
        return found
"""
CALLING = """\
    from called import total

    def mean(values):
        return total(values) / len(values)

    def spread(values):
        return [value - mean(values) for value in values]
"""


@pytest.mark.slow
def test_edited_line_heads_the_functions_that_it_makes_run_more(project: Project) -> None:
    project.write("called.py", textwrap.dedent(CALLED))
    project.write("calling.py", textwrap.dedent(CALLING.replace("mean(values) for", "values[0] for")))
    test = (
        "import pytest\nfrom calling import spread\n@pytest.mark.profile\ndef test_it(): spread(range(80))\n"
    )
    project.write("test_it.py", test)
    project.git("init", "-q")
    project.commit()
    assert project.pytest("--opprof-save=main").exit_code == 0
    project.write("calling.py", textwrap.dedent(CALLING))
    section = compared(project).failures["test_it"]
    line, _, functions = section.partition("Python instructions rose in ")
    where, text, total = line.strip().splitlines()[-3:]
    assert where.startswith("calling.py:7 in spread")
    assert where.endswith("changed in this branch")
    assert text == "    return [value - mean(values) for value in values]"
    assert total.startswith("  all Python instructions")
    assert functions.startswith("total, called.py (+")
    assert "mean, calling.py (+" in functions


STACK = """\
    import pytest, traceback

    def descend():
        descend()

    @pytest.mark.profile
    def test_stack():
        for _ in range(50):
            traceback.format_stack()

    @pytest.mark.profile
    def test_limit():
        with pytest.raises(RecursionError):
            descend()
"""


@pytest.mark.slow
def test_deeper_outer_stack_adds_no_instructions(make_project: MakeProject) -> None:
    project = make_project("deeper")
    saved(project, {}, STACK)
    session = project.pytest("-n", "1", "--opprof-baseline=main", plugins=("xdist",))
    assert session.exit_code == 0
    assert "2 passed" in session.stdout
    assert "changed: test_stack" not in session.stdout


VARYING = """\
    import pytest, threading, time, uuid

    def count(n):
        return [i for i in range(n)]

    @pytest.mark.profile
    def test_set():
        for name in {f"name {i}" for i in range(40)}:
            count(10)
            if name.endswith("7"):
                break

    @pytest.mark.profile
    def test_threads():
        thread = threading.Thread(target=count, args=(50,))
        thread.start()
        thread.join()

    @pytest.mark.profile
    def test_clock():
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            count(1)

    @pytest.mark.profile
    def test_random():
        count(uuid.uuid4().int % 500)
"""


@pytest.mark.slow
def test_varying_instructions_are_named_and_never_fail(make_project: MakeProject) -> None:
    project = make_project("varying")
    saved(project, {}, VARYING)
    for _ in range(2):
        session = compared(project)
        assert session.exit_code == 0
        assert "REGRESSED" not in session.stdout


@pytest.mark.slow
def test_instructions_are_counted_unless_they_are_not_wanted(make_project: MakeProject) -> None:
    project = make_project("off")
    project.write("code_of.py", "def work():\n    return 1\n")
    project.write("test_it.py", textwrap.dedent(TESTS.format(kinds=["code_of"])))
    assert project.pytest("--opprof-json=run.json").exit_code == 0
    assert "python.instructions" in (project.folder / "run.json").read_text()
    assert project.pytest("--opprof-instructions=off", "--opprof-json=run.json").exit_code == 0
    assert "python.instructions" not in (project.folder / "run.json").read_text()


SHOP = """\
    import functools

    class Prices:
        def __init__(self, digits=2):
            self.digits = digits

        def rounded(self, price):
            for digit in range(40, self.digits, -1):
                price = min(price, price + digit)
            return price

    @functools.cache
    def price(item):
        return sum(range(item)) + len([k for k in range(item)])

    def total(prices, items):
        found = [price(item) for item in items]
        found = [prices.rounded(one) for one in found]
        return sum(found)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "where", "text"),
    [
        ("@functools.cache\n", "", "shop.py:12 in price", "def price(item):"),
        ("digits=2", "digits=-80", "shop.py:4 in Prices.__init__", "def __init__(self, digits=-80):"),
        (
            "return sum(found)",
            "return sum(map(prices.rounded, found))",
            "shop.py:19 in total",
            "return sum(map(prices.rounded, found))",
        ),
    ],
    ids=["a lost cache", "a default", "a call from C code"],
)
def test_line_that_makes_functions_run_more_is_named(
    project: Project, old: str, new: str, where: str, text: str
) -> None:
    source = textwrap.dedent(SHOP)
    project.write("shop.py", source)
    test = "import pytest, shop\n@pytest.mark.profile\ndef test_it(): shop.total(shop.Prices(), range(40))\n"
    project.write("test_it.py", test)
    project.git("init", "-q")
    project.commit()
    assert project.pytest("--opprof-save=main").exit_code == 0
    project.write("shop.py", source.replace(old, new))
    lines = compared(project).failures["test_it"].splitlines()
    at = lines.index(f"{where}    changed in this branch")
    assert lines[at + 1].strip() == text
    assert lines[at - 1] == ""  # it is the first block
    assert lines[at - 2].startswith(("REGRESSED: ", "    "))
