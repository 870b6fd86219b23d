"""Which statements of a source are new or edited."""

import pytest

from pytest_opprof.baselines.code_edits import CodeEdits, edits_between

BASE = '''\
"""A shop."""

LIMIT = 3


@cache
def stem(word, steps=LIMIT):
    """Cut it."""
    found = word.strip()
    for step in range(steps):
        found = cut(found, step)
    return found


class Index(Base):
    size: int = 4

    def score(self, rows):
        total = self.mix(
            rows,
            heads=2,
        )
        with self.traced():
            total = total * self.size
        return [stem(word) for word in total]
'''
NONE = CodeEdits(frozenset())
MEMBER = (
    "class A:\n    def __init__(self): self.a = 1\n    def f(self): return self.a\ndef g(x): return x.a\n"
)


def edits_of(head: str, base: str = BASE) -> CodeEdits:
    return edits_between({"a.py": base.encode()}, {"a.py": head.encode()})["a.py"]


def edited(head: str, base: str = BASE) -> list[str]:
    """The edited lines without their indentation."""
    lines = head.splitlines()
    return [lines[number - 1].strip() for number in sorted(edits_of(head, base).lines)]


def moved(text: str) -> str:
    """The class before the function."""
    function, _, rest = text.partition("class Index")
    head, _, function = function.partition("@cache")
    return f"{head}class Index{rest}\n\n@cache{function}"


@pytest.mark.parametrize(
    "head",
    [
        BASE.replace("Cut it.", "Cut it off."),
        BASE.replace('    """Cut it."""\n', ""),
        BASE.replace("word, steps=LIMIT", "word: str, steps: int = LIMIT").replace(
            '):\n    "', ') -> str:\n    "'
        ),
        BASE.replace("size: int = 4", "size = 4"),
        BASE.replace("(\n            rows,\n            heads=2,\n        )", "(rows, heads=2)"),
        BASE.replace("total * self.size", "(total*self.size)  # all of it"),
        BASE.replace("total", "score"),
        BASE.replace("found", "root").replace("word", "text"),
        BASE.replace("\n", "\r\n"),
        BASE.replace("        with self.traced():\n    ", ""),
        moved(BASE),
    ],
    ids=[
        "docstring",
        "no docstring",
        "hints",
        "no hint",
        "black",
        "layout",
        "name",
        "names",
        "CRLF",
        "no with",
        "order",
    ],
)
def test_what_does_the_same_is_not_edited(head: str) -> None:
    assert head != BASE
    assert edits_of(head)._replace(cut=frozenset()) == NONE


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("heads=2", "heads=3", ["heads=3,"]),
        ("            heads=2,\n", "", ["total = self.mix("]),
        ("cut(found, step)", "cut(word, step)", ["found = cut(word, step)"]),
        ("cut(found, step)", "trim(found, step)", ["found = trim(found, step)"]),
        ("range(steps):", "range(steps + 1):\n        # all", ["for step in range(steps + 1):"]),
        ("steps=LIMIT", "steps=9", ["def stem(word, steps=9):"]),
        ("steps=LIMIT", "steps=MOST", ["def stem(word, steps=MOST):"]),
        ("    return found", "        return found", ["return found"]),
        ("self.traced()", "self.traced(2)", ["with self.traced(2):"]),
        ("self.size\n", "self.size\n            total = total + 1\n", ["total = total + 1"]),
        ("LIMIT = 3", "LIMIT = 4", ["LIMIT = 4"]),
        ("(Base)", "(Other)", ["class Index(Other):"]),
    ],
)
def test_lines_that_do_something_else_are_edited(old: str, new: str, lines: list[str]) -> None:
    assert edited(BASE.replace(old, new)) == lines


def test_variables_keep_their_new_names_inside_their_scope() -> None:
    """Names given in one function say nothing about another one."""
    base = "def a(x):\n    def b():\n        return x\n    return b\ndef c(x, y):\n    return x + 1\n"
    assert edited(base.replace("a(x)", "a(z)").replace("return x\n", "return z\n"), base) == []
    assert edited(base.replace("a(x)", "a(y)").replace("x\n", "y\n").replace("x + 1", "y + 1"), base) == [
        "return y + 1"
    ]
    assert edited("out[full] = f(out[full])", "out[small] = f(out[small])") == ["out[full] = f(out[full])"]
    assert edited("q = f'''LIMIT n'''", "q = f'''LIMIT $1'''") == ["q = f'''LIMIT n'''"]


def test_functions_that_lost_statements_or_decorators_are_known() -> None:
    assert edits_of(BASE.replace("@cache\n", "")) == NONE._replace(decorated=frozenset({"stem"}))
    added = edits_of(BASE.replace("    def score", "    @cache\n    def score"))
    assert added.decorated == {"Index.score"}
    assert len(added.lines) == 1
    assert edits_of(BASE.replace("    return found\n", "")).cut == {"stem"}
    assert edits_of(BASE.replace("LIMIT = 3\n", "")).cut == {""}
    assert edits_of(BASE.replace("    size: int = 4\n", "")).cut == {"Index"}
    assert edits_of(BASE[: BASE.index("class")]).cut == {""}
    assert edits_of(BASE[: BASE.index("    def score")]).cut == {"Index"}


def test_code_that_moved_to_another_file_is_not_edited() -> None:
    model, index = BASE.split("\n\nclass ")
    index = f"class {index}"
    found = edits_between(
        {"shop.py": BASE.encode()},
        {"shop.py": model.encode(), "index.py": index.replace("return [", "return not [").encode()},
    )
    assert found["shop.py"] == NONE
    assert found["index.py"].lines == {11}
    assert found["index.py"].new == {""}


def test_renamed_class_is_known_by_its_statements() -> None:
    base = "class Head:\n    def forward(self, x):\n        return self.net(x) * self.gain\n"
    adapter = "class Adapter:\n    def forward(self, x, y):\n        return self.net(y) * 2\n"
    head = adapter + base.replace("Head", "Classifier")
    assert edits_of(head, base).lines & {2, 3, 5, 6} == {2, 3}


def test_a_new_file_is_edited_as_a_whole() -> None:
    found = edits_between({}, {"a.py": b"# a\nx = 1\n\n\ndef f(\n    y\n):\n    return y\n"})
    assert found["a.py"] == CodeEdits(frozenset({2, 5, 6, 7, 8}), new=frozenset({"", "f"}))


def test_all_kinds_of_blocks_are_read() -> None:
    base = (
        "try:\n    a()\nexcept E:\n    b()\nelse:\n    c()\nfinally:\n    d()\n"
        "match x:\n    case 1 if y:\n        e()\n    case _:\n        f()\nif x: g()\nelse: h()\n"
    )
    for name in "abcdefgh":
        assert edited(base.replace(f"{name}()", "new()"), base) == [
            line.strip().replace(f"{name}()", "new()") for line in base.splitlines() if f"{name}()" in line
        ]
    assert edited(base.replace("case 1", "case 2"), base) == ["case 2 if y:"]
    # What only one branch runs is not what the other one ran.
    assert edited(base.replace("g()", "i()").replace("h()", "g()"), base) == ["if x: i()", "else: g()"]


@pytest.mark.parametrize("source", ["def f(:\n", "\0", "x = " + "(" * 500 + "1" + ")" * 500])
def test_a_source_that_python_cannot_read_is_compared_by_lines(source: str) -> None:
    assert edits_of(f"{source}\nsame", "same\nx\n").lines == {1}
    assert edits_of("same\nnew\n", f"{source}\nsame\n").lines == {2}


def test_very_long_sum_is_compared_by_its_text() -> None:
    base = f"def f(x):\n    return {' + '.join(['x'] * 600)}\n\ndef g(x):\n    return x\n"
    assert edits_of(base.replace("return x\n", "return -x\n"), base).lines == {5}
    assert edits_of(base.replace("x + x + x", "x + x - x", 1), base).lines == {2}


@pytest.mark.parametrize(
    ("base", "head", "lines"),
    [
        ("h, w = x.shape\nuse(h)\n", "w, h = x.shape\nuse(h)\n", {1}),
        (
            "def f(n):\n    n = min(n, 8)\n    return range(n)\n",
            "def f(n):\n    m = min(n, 8)\n    return range(n)\n",
            {2},
        ),
        ("def f(a=1, b=9): use(a)\n", "def f(b=1, a=9): use(a)\n", {1}),
        ("D = 2\nM = 48\n", "M = 2\nD = 48\n", {1, 2}),
        ("def f(x): return x\n", "async def f(x): return x\n", {1}),
        ("try: a()\nexcept E as e: b(e)\n", "try: a()\nexcept E as err: b(err)\n", set()),
        ("def f(x): return x\nf(1)\n", "def g(x): return x\ng(1)\n", set()),
        (
            "class A:\n    def f(self): return 1\nA().f()\n",
            "class A:\n    def g(self): return 1\nA().g()\n",
            set(),
        ),
        ("x.f()\n", "x.g()\n", {1}),
        (MEMBER, MEMBER.replace(".a", ".b"), set()),
        (MEMBER, MEMBER.replace("self.a", "self.b"), {2, 3}),
        ("class A:\n    a = 1\ndef f(): return A.a\n", "class A:\n    b = 1\ndef f(): return A.b\n", set()),
        ("def f(n): return n\nf(n=1)\n", "def f(m): return m\nf(m=1)\n", set()),
        ("def f(n, m): return n\nf(n=1)\n", "def f(m, n): return m\nf(m=1)\n", {1, 2}),
        (
            "def f(x):\n    a = x.p()\n    b = x.q()\n    return b\n",
            "def f(x):\n    c = x.q()\n    return c\n",
            set(),
        ),
        ("a = 1\rb = 2\rc = 3\r", "a = 1\rb = 2\rc = 4\r", {3}),
        ("a = 1\r\r\nb = 2\r\r\n", "a = 1\r\r\nb = 3\r\r\n", {3}),
    ],
    ids=[
        "swap",
        "cap",
        "defaults",
        "constants",
        "async",
        "except",
        "function",
        "method",
        "another method",
        "attribute",
        "another attribute",
        "class variable",
        "keyword",
        "swapped keywords",
        "the last of two",
        "CR",
        "CR CR LF",
    ],
)
def test_a_name_is_renamed_if_it_is_gone(base: str, head: str, lines: set[int]) -> None:
    assert edits_of(head, base).lines == lines


def test_functions_of_one_name_are_paired_by_their_text() -> None:
    base = "@overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\ndef f(x):\n    return run(x)\n"
    assert edits_of(f"@overload\ndef f(x: float): ...\n{base}", base).lines <= {1, 2}
    getter, setter = (
        "    @property\n    def p(self):\n        return 1\n",
        "    @p.setter\n    def p(self, v):\n        use(v)\n",
    )
    assert edits_of(f"class A:\n{setter}{getter}", f"class A:\n{getter}{setter}") == NONE


def test_a_large_move_is_found() -> None:
    base = {
        f"pkg/{at}.py": "".join(f"def f{n}(x):\n    return x + {n}\n" for n in range(at, at + 50))
        for at in range(0, 500, 50)
    }
    old, new = ({f"{root}{file}": text.encode() for file, text in base.items()} for root in ("", "src/"))
    found = edits_between(old, new)
    assert {edits.lines for edits in found.values()} == {frozenset()}


def test_an_inserted_branch_leaves_the_later_ones() -> None:
    base = "if a:\n    f()\nelif b:\n    g()\nelif c:\n    h()\n"
    assert edited(base.replace("elif b:", "elif new:\n    n()\nelif b:"), base) == ["elif new:", "n()"]


def test_statements_taken_out_into_a_function_are_the_same() -> None:
    base = "class A:\n    def f(self, x):\n        x = self.a(x)\n        x = self.b(x)\n        return self.c(x)\n"
    head = base.replace("def f", "def _f").replace(
        "class A:\n", "class A:\n    def f(self, x):\n        check(x)\n        return self._f(x)\n"
    )
    assert edited(head, base) == ["check(x)", "return self._f(x)", "def _f(self, x):"]


def test_number_of_thousands_of_digits_is_compared_by_its_text() -> None:
    base = f"P = 0x{'f' * 4000}\nq = 1\n"
    assert edits_of(base.replace("q = 1", "q = 2"), base).lines == {2}
    assert edits_of(base.replace("0xf", "0xe"), base).lines == {1}


def test_annotated_lines_of_an_edited_signature_are_not_edited() -> None:
    base = "def f(\n    a,\n    b=1,\n    c=2\n):\n    return a\n"
    head = "def f(\n    a: int,\n    b: float = 1,\n    c: int = 3\n) -> float:\n    return a\n"
    assert edited(head, base) == ["c: int = 3"]
