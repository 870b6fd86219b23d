"""Work of plain Python that no op shows: slower code fails its test, and the function that grew is named."""

import textwrap

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

WIDE = {"COLUMNS": "300"}

# Of each kind of slow-down the module before and after it, and the function that does more.
SLOWER = {
    "loop_for_builtin": (
        "def work(n=200):\n    return sum(range(n))\n",
        "def work(n=200):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n",
        "work",
    ),
    "lost_cache": (
        "import functools\n@functools.cache\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "def work():\n    fib.cache_clear()\n    return fib(14)\n",
        "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\ndef work():\n    return fib(14)\n",
        "fib",
    ),
    "quadratic_copy": (
        "def work(n=60):\n    kept = []\n    for i in range(n):\n        kept.append(i)\n    return kept\n",
        "def work(n=60):\n    kept = []\n    for i in range(n):\n        kept = [k for k in kept] + [i]\n"
        "    return kept\n",
        "work",
    ),
    "eager_message": (
        "LOUD = False\ndef describe(item):\n    return ', '.join(str(part) for part in item)\n"
        "def work(n=50):\n    for i in range(n):\n        if LOUD:\n            print(describe((i, i)))\n",
        "LOUD = False\ndef describe(item):\n    return ', '.join(str(part) for part in item)\n"
        "def work(n=50):\n    for i in range(n):\n        message = describe((i, i))\n"
        "        if LOUD:\n            print(message)\n",
        "describe",
    ),
    "nested_search": (
        "def work(n=40):\n    known = {i: i for i in range(n)}\n    return [known[i] for i in range(n)]\n",
        "def find(pairs, key):\n    for name, value in pairs:\n        if name == key:\n            return value\n"
        "def work(n=40):\n    known = [(i, i) for i in range(n)]\n    return [find(known, i) for i in range(n)]\n",
        "find",
    ),
    "recomputed_in_loop": (
        "def limit():\n    return max(i * 7 % 11 for i in range(30))\n"
        "def work(n=30):\n    top = limit()\n    return [i for i in range(n) if i < top]\n",
        "def limit():\n    return max(i * 7 % 11 for i in range(30))\n"
        "def work(n=30):\n    return [i for i in range(n) if i < limit()]\n",
        "limit.<locals>.<genexpr>",
    ),
    "property_in_loop": (
        "class Box:\n    def __init__(self):\n        self.size = 3\n"
        "def work(n=200):\n    box = Box()\n    return sum(box.size for _ in range(n))\n",
        "class Box:\n    def __init__(self):\n        self._size = 3\n    @property\n    def size(self):\n"
        "        return self._size\n"
        "def work(n=200):\n    box = Box()\n    return sum(box.size for _ in range(n))\n",
        "Box.size",
    ),
    "early_exit_lost": (
        "def has_even(items):\n    for item in items:\n        if item % 2 == 0:\n            return True\n"
        "    return False\ndef work():\n    return has_even(range(300))\n",
        "def has_even(items):\n    found = False\n    for item in items:\n        if item % 2 == 0:\n"
        "            found = True\n    return found\ndef work():\n    return has_even(range(300))\n",
        "has_even",
    ),
    "twice_over_input": (
        "def work(n=150):\n    low = high = 0\n    for i in range(n):\n        low = min(low, i)\n"
        "        high = max(high, i)\n    return low, high\n",
        "def work(n=150):\n    low = high = 0\n    for i in range(n):\n        low = min(low, i)\n"
        "    for i in range(n):\n        high = max(high, i)\n    return low, high\n",
        "work",
    ),
    "recursion_for_loop": (
        "def depth(n):\n    total = 0\n    while n:\n        n -= 1\n        total += 1\n    return total\n"
        "def work():\n    return depth(150)\n",
        "def depth(n):\n    return 0 if n == 0 else 1 + sum([depth(n - 1)]) + abs(0) + abs(0) + abs(0)\n"
        "def work():\n    return depth(150)\n",
        "depth",
    ),
    "deep_copy": (
        "import copy\ndef work():\n    return copy.copy([{'a': i} for i in range(20)])\n",
        "import copy\ndef work():\n    return copy.deepcopy([{'a': i} for i in range(20)])\n",
        "deepcopy",
    ),
    "two_percent": (
        "def work(n=2000):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n",
        "def work(n=2040):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n",
        "work",
    ),
    "list_for_set": (
        "def work(n=50):\n    known = set(range(n))\n    return [i in known for i in range(n)]\n",
        "def work(n=50):\n    known = list(range(n))\n    return [i in known for i in range(n)]\n",
        "",  # a loop in C, which runs no Python instruction
    ),
    "backtracking": (
        "import re\ndef work():\n    return re.compile('a+b').search('a' * 15)\n",
        "import re\ndef work():\n    return re.compile('(a|a)+b').search('a' * 15)\n",
        "",  # as above; the pattern is compiled before
    ),
}

TESTS = """\
    import importlib
    import pytest

    @pytest.mark.profile
    @pytest.mark.parametrize("kind", {kinds})
    def test_kind(kind):
        importlib.import_module(kind).work()
"""


def saved(project: Project, modules: dict[str, str], tests: str) -> None:
    """The project with a baseline."""
    for name, text in modules.items():
        project.write(f"{name}.py", text)
    project.write("test_it.py", textwrap.dedent(tests))
    assert project.pytest("--opprof-save=main").exit_code == 0


def compared(project: Project) -> Session:
    """What a later session says."""
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


@pytest.mark.parametrize("kind", [kind for kind, (_, _, function) in SLOWER.items() if function])
def test_slower_code_fails_and_its_function_is_named(slower: Session, kind: str) -> None:
    section = slower.failures[f"test_kind[{kind}]"]
    assert "REGRESSED" in section
    assert f"instructions rose in {SLOWER[kind][2]}" in section


@pytest.mark.parametrize("kind", [kind for kind, (_, _, function) in SLOWER.items() if not function])
def test_loops_in_c_are_not_seen(slower: Session, kind: str) -> None:
    assert f"test_kind[{kind}]" not in slower.failures


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


def test_what_varies_never_fails_and_is_named(make_project: MakeProject) -> None:
    project = make_project("varying")
    saved(project, {}, VARYING)
    for _ in range(2):
        session = compared(project)
        assert session.exit_code == 0
        assert "REGRESSED" not in session.stdout


def test_instructions_are_counted_unless_they_are_not_wanted(make_project: MakeProject) -> None:
    project = make_project("off")
    project.write("code_of.py", "def work():\n    return 1\n")
    project.write("test_it.py", textwrap.dedent(TESTS.format(kinds=["code_of"])))
    assert project.pytest("--opprof-json=run.json").exit_code == 0
    assert "python.instructions" in (project.folder / "run.json").read_text()
    assert project.pytest("--opprof-instructions=off", "--opprof-json=run.json").exit_code == 0
    assert "python.instructions" not in (project.folder / "run.json").read_text()
