"""Malicious comparisons: every text in a file contains what some reader interprets."""

from dataclasses import replace

from hypothesis import strategies as st
from support.documents.compared import NOW
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.comparison import (
    Change,
    Comparison,
    LimitResult,
    Rewrite,
    RewriteKind,
    TestComparison,
)
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.compare.timing.comparison import Control, Sides, TestTimes, TimeComparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import Commit, Environment
from pytest_opprof.results.samples import Samples

# Part of every hostile text, so that a test can find where it appears.
NEEDLE = "EVIL"
PIECES = [
    *(
        "@org/team",
        "@user",
        "user@host.example",
        "#123",
        "!45",
        "GH-1",
        "org/repo#1",
        "$12",
        "~bug",
        "%1",
        "&2",
    ),
    *(
        "https://evil.example/x",
        "www.evil.example",
        "ftp://evil.example",
        "<https://evil.example>",
        "mailto:a@b.c",
    ),
    *(
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "</script>",
        "</details>",
        "</code>",
        "<br>",
    ),
    *(
        "</summary>",
        "</td>",
        "<!--",
        "-->",
        "<!-- opprof:sticky v1 -->",
        "]]>",
        "<![CDATA[",
        "<?xml",
        "<svg/onload=x>",
    ),
    *(
        "`",
        "``",
        "```",
        "\\",
        "\\`",
        "|",
        "\\|",
        "\\\\|",
        "*",
        "**",
        "_",
        "__",
        "~~",
        "$`x`$",
        "$$x$$",
        ":tada:",
    ),
    *(
        "[a](javascript:alert(1))",
        "![](https://evil.example/p.png)",
        "[x]: https://evil.example",
        "[^1]",
        "[[_TOC_]]",
    ),
    *(
        "\n",
        "\r\n",
        "\n\n# a title\n\n",
        "\n/close\n",
        "\n- a\n",
        "\n> a\n",
        "\n    a\n",
        "\n| a |\n|--|\n",
        "\n===\n",
    ),
    *(
        "::error file=a::b",
        "\n::error::b",
        "%0A::error::b",
        "##[error]b",
        "::add-mask::a",
        ",title=b",
        "%25",
        "%3A",
    ),
    *(
        "\x1b[31m",
        "\x00",
        "\x07",
        "\x85",
        "\u2028",
        "\u202e",
        "\u2066",
        "\u200b",
        "\ufeff",
        "\ud800",
        "\uffff",
    ),
    *(
        "&lt;",
        "&#64;",
        "&amp;",
        "&colon;",
        '"',
        "'",
        " ",
        "  ",
        "\t",
        "\xa0",
        "=",
        ",",
        "{",
        "}",
        '"} 7',
        "# EOF",
    ),
    *(
        "{{ 7 }}",
        "{% x %}",
        "${{ github.token }}",
        "$(id)",
        ";id",
        "日本",
        "e\u0301",
        "\N{PILE OF POO}",
        "aten::mul",
    ),
]
_FILLED = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def _around(pair: tuple[str, str]) -> str:
    return f"{pair[0]}{NEEDLE}{pair[1]}"


texts = st.tuples(_FILLED, _FILLED).map(_around)
lines = st.sampled_from([1, 7]).map(str)
places = st.builds("{}, {}:{}".format, texts, texts, lines)


@st.composite
def changes(draw: st.DrawFn, verdict: Verdict) -> Change:
    """A change of an op with a hostile name."""
    rewrite = Rewrite(kind=RewriteKind.FUSED, before=(draw(texts),), after=(draw(texts), draw(texts)))
    return Change(
        op=draw(texts),
        kind=OpKind.OP,
        background=draw(st.booleans()),
        metric="count",
        base=Samples.constant(1, steps=3),
        head=Samples.constant(2, steps=3),
        rule=NEEDLE,
        verdict=verdict,
        cause=draw(texts),
        reason=draw(texts),
        rewrite=draw(st.none() | st.just(rewrite)),
    )


@st.composite
def tests(draw: st.DrawFn) -> TestComparison:
    """A test with a hostile name."""
    node_id = f"{draw(texts)}::{draw(texts)}"
    verdict = draw(st.sampled_from(Verdict))
    ops = draw(st.dictionaries(texts, st.just(1), min_size=1, max_size=3))
    rows = draw(st.dictionaries(places, st.just(3), max_size=2))
    before = simple_test(ops, node_id=node_id)
    after = simple_test(dict.fromkeys(ops, 2), node_id=node_id)
    after = replace(after, ops=tuple(replace(row, places=rows, parent_op=draw(texts)) for row in after.ops))
    limit = LimitResult(
        path=draw(texts), limit=draw(texts)[:64], value=None, verdict=Verdict.REGRESSED, reason=draw(texts)
    )
    called = tuple(
        replace(draw(changes(verdict)), op=name, rewrite=None) for name in ops
    )  # so that there is a call site
    return TestComparison(
        node_id=node_id,
        verdict=verdict,
        reason=draw(texts),
        changes=(*called, draw(changes(verdict))),
        limits=(limit,) * draw(st.integers(0, 1)),
        advisories=(draw(texts),),
        base=before,
        head=after,
    )


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    """A comparison with hostile texts wherever a file allows text."""
    found = draw(st.lists(tests(), min_size=1, max_size=3, unique_by=lambda test: test.node_id))
    fields = st.dictionaries(st.sampled_from(["torch", "python"]), texts, max_size=2)
    base, head = (
        simple_run(
            name=draw(texts)[:200],
            commit=Commit(id="1a2b3c4" + "0" * 33, dirty=draw(st.booleans()), branch=draw(texts)),
            environment=Environment(fingerprint=draw(fields)),
        )
        for _ in range(2)
    )
    bare = compare_runs(base, head, created=NOW, opprof_version="0.1.0")
    return replace(bare, notes=(draw(texts),), tests=tuple(found))


@st.composite
def time_comparisons(draw: st.DrawFn) -> TimeComparison:
    """The same with the times of an A/B."""
    exact = draw(comparisons())
    sides = Sides(base_ns=(1_000, 1_000), head_ns=(2_000, 2_000))
    return TimeComparison(
        exact=exact,
        base_processes=2,
        head_processes=2,
        control=Control(noise_ppm=1, noisiest=draw(texts), flagged=(draw(texts),)),
        notes=(draw(texts),),
        tests=tuple(
            TestTimes(
                node_id=test.node_id,
                verdict=test.verdict,
                reason=draw(texts),
                cause=draw(texts),
                times=draw(st.none() | st.just(sides)),
            )
            for test in exact.tests
        ),
    )


# inputs for every renderer, with and without times
judged = comparisons() | time_comparisons()
