"""Options of a session that another process is given."""

import pytest

from pytest_opprof.plugin.arguments import kept


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (("-x", "-vv", "--lf", "--ff", "--sw"), ()),
        (("-n", "4", "-n4", "--dist", "load", "--numprocesses=3"), ()),
        (("--junitxml=a.xml", "--junit-xml", "b.xml", "--maxfail", "1", "--durations=3"), ()),
        (("--opprof-save=main", "--opprof-baseline", "main", "--opprof-json", "a.json"), ()),
        (("--opprof-capture", "ranges", "--opprof-capture=ops"),) * 2,
        (("--opprof-mark", "models", "--opprof-mark=. active=2", "--opprof-profile=warmup=1"),) * 2,
        (("--opprof", "only", "--opprof=off"),) * 2,
        (("-k", "a or b", "-m", "not slow", "--deselect", "x::y", "--deselect=z"),) * 2,
        (("-p", "no:cacheprovider", "-o", "a=b", "-c", "x.ini", "-W", "error", "--rootdir=r"),) * 2,
        (("--own", "value", "--own=value", "-s", "-rA", "--strict-markers", "--nodots"),) * 2,
        (
            ("--cov", "package", "--cov-report", "term", "--cov=package", "--no-cov-on-fail"),
            ("--no-cov-on-fail",),
        ),
        (("--benchmark-json", "a.json", "--benchmark-skip", "-s"), ("-s",)),
        (("--basetemp", "t", "--html=r.html", "--self-contained-html", "-q"), ()),
        (("--co", "--collect-only", "-s"), ("-s",)),
    ],
)
def test_report_and_distribution_options_are_left_out(given: tuple[str, ...], left: tuple[str, ...]) -> None:
    assert tuple(kept(given, positional=set())) == left


def test_paths_are_left_out_wherever_they_stand() -> None:
    given = (
        "tests",
        "--benchmark-skip",
        "tests/test_a.py",
        "-s",
        "-x",
        "tests/test_b.py::test_c",
        "--own=tests",
    )
    positional = {"tests", "tests/test_a.py", "tests/test_b.py::test_c"}
    assert tuple(kept(given, positional=positional)) == ("-s", "--own=tests")


def test_the_value_of_an_option_may_be_a_path_too() -> None:
    given = ("--opprof-mark", "tests", "tests", "--opprof-json", "tests", "-s")
    assert tuple(kept(given, positional={"tests"})) == ("--opprof-mark", "tests", "-s")
