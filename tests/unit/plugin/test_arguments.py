"""Options of a session that another process is given."""

import pytest

from pytest_opprof.plugin.arguments import kept, own_options


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
    assert tuple(kept(given)) == left


@pytest.fixture
def project(lone: pytest.Pytester) -> pytest.Pytester:
    """A project with two files of tests and options of its own."""
    lone.makeconftest(
        """\
        def pytest_addoption(parser):
            parser.addoption("--own")
            parser.addoption("--many", type=int)
            parser.addoption("--maybe", nargs="?", const="x")
            parser.addoption("--flag", action="store_true")
        """
    )
    for name in ("tests/test_a.py", "tests/test_b.py", "2/test_c.py"):
        path = lone.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("def test_c(): pass\n")
    return lone


@pytest.mark.parametrize(
    ("given", "left"),
    [
        pytest.param("tests -s -x tests/test_b.py::test_c --own=tests", "-s --own=tests", id="between"),
        pytest.param("-k tests tests", "-k tests", id="equal to a value before"),
        pytest.param("tests -k tests", "-k tests", id="equal to a value after"),
        pytest.param(". --rootdir . . --own .", "--rootdir . --own .", id="equal to several values"),
        pytest.param("2 --many 2 2", "--many 2", id="equal to a number"),
        pytest.param("--flag tests --maybe tests", "--flag --maybe tests", id="after a flag"),
        pytest.param("--opprof-mark tests tests --opprof-json tests -s", "--opprof-mark tests -s", id="ours"),
        pytest.param("-k a -- tests", "-k a", id="after two dashes"),
    ],
)
def test_paths_are_left_out_and_options_keep_their_values(
    project: pytest.Pytester, given: str, left: str
) -> None:
    assert own_options(project.parseconfig(*given.split())) == left.split()


@pytest.mark.skipif(pytest.version_tuple < (8, 2), reason="this pytest does not read arguments from files")
def test_a_file_of_arguments_is_read_for_its_options(project: pytest.Pytester) -> None:
    (project.path / "ci.txt").write_text("tests\n--own\ntests\n--junitxml=a.xml\n@more.txt\n")
    (project.path / "more.txt").write_text("2\n--flag\n")
    config = project.parseconfig("-s", "@ci.txt", "tests/test_a.py")
    assert own_options(config) == ["-s", "--own", "tests", "--flag"]
