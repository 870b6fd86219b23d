"""A profiled test's outcome, output and warnings are its own; its first call decides."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

TESTS = """\
    import cProfile, logging, pstats, sys, warnings
    import pytest
    from pytest_opprof import record_function

    CALLS = {}

    def call(name):
        CALLS[name] = CALLS.get(name, 0) + 1
        return CALLS[name]

    pytestmark = pytest.mark.profile(warmup=1, active=2)

    # ---- a later call does something else than the first

    def test_makes_a_folder(tmp_path):
        (tmp_path / "d").mkdir()

    def test_skips_later():
        if call("skips") == 2:
            pytest.skip("enough")

    def test_fails_later():
        if call("fails") == 3:
            pytest.fail("enough")

    def test_xfails_later():
        if call("xfails") == 2:
            pytest.xfail("enough")

    def test_exits_later():
        if call("exits") == 2:
            sys.exit("enough")

    class Own(BaseException):
        pass

    def test_asserts_later():
        assert call("asserts") < 3

    # ---- the first call does it

    def test_fails():
        left, right = [1, 2, 3], [1, 5, 3]
        assert left == right

    def test_skips():
        pytest.skip("not here")

    @pytest.mark.skip(reason="never")
    def test_skipped():
        raise AssertionError

    def test_xfails():
        pytest.xfail("as expected")

    @pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
    def test_marked_xfail():
        1 / 0

    @pytest.mark.xfail(reason="it may")
    def test_xpasses():
        with record_function("work"):
            pass

    @pytest.mark.xfail(run=False)
    def test_not_run():
        raise AssertionError

    def test_exits():
        sys.exit(3)

    def test_raises_a_base_exception():
        raise Own

    def test_setup_fails(no_such_fixture):
        pass

    @pytest.fixture
    def fails_at_the_end():
        yield
        raise RuntimeError("in teardown")

    def test_teardown_fails(fails_at_the_end):
        pass

    # ---- what tests use

    def test_warns():
        with pytest.warns(UserWarning, match="mine"):
            warnings.warn("mine")

    def test_warns_unheard():
        warnings.warn("my own")

    def test_output(capsys):
        print("heard")
        assert capsys.readouterr().out == "heard\\n"

    def test_log(caplog):
        caplog.clear()
        logging.getLogger("own").warning("heard")
        assert caplog.messages == ["heard"]

    def test_environment(monkeypatch):
        monkeypatch.setattr(sys, "argv", ["mine"])
        assert sys.argv == ["mine"]

    def test_recwarn(recwarn):
        recwarn.clear()
        warnings.simplefilter("always")
        warnings.warn("mine")
        assert len(recwarn) == 1

    def test_profile_function():
        seen = []
        sys.setprofile(lambda frame, event, argument: seen.append(event))
        call("setprofile")
        sys.setprofile(None)
        assert "call" in seen

    def test_trace_function():
        before, seen = sys.gettrace(), []
        sys.settrace(lambda frame, event, argument: seen.append(event))
        call("settrace")
        sys.settrace(before)
        assert "call" in seen

    def test_cprofile():
        with cProfile.Profile() as profiler:
            call("cprofile")
        assert any(name == "call" for _, _, name in pstats.Stats(profiler).stats)

    def test_prints():
        print("the test said this")
"""

LATER = {
    "test_makes_a_folder": "call 2 raised FileExistsError",
    "test_skips_later": "call 2 raised Skipped",
    "test_fails_later": "call 3 raised Failed",
    "test_xfails_later": "call 2 raised XFailed",
    "test_exits_later": "call 2 raised SystemExit",
    "test_asserts_later": "call 3 raised AssertionError",
}
FAILED = {"test_fails", "test_exits", "test_raises_a_base_exception", "test_warns_unheard"}
SKIPPED = {"test_skips", "test_skipped", "test_xfails", "test_marked_xfail", "test_not_run"}
PASSED = {
    *("test_xpasses", "test_warns", "test_output", "test_log", "test_environment", "test_recwarn"),
    *("test_profile_function", "test_trace_function", "test_cprofile", "test_prints", "test_teardown_fails"),
}


@pytest.fixture(scope="module")
def outcomes(make_project: MakeProject) -> Session:
    project = make_project("outcomes")
    project.write("test_it.py", TESTS)
    return project.pytest("-rA")


def test_outcomes_match_a_session_without_the_plugin(outcomes: Session, make_project: MakeProject) -> None:
    project = make_project("outcomes_without_us")
    project.write("test_it.py", TESTS)
    without = project.pytest("--opprof=off", writes_run=False)
    assert outcomes.outcomes == without.outcomes
    assert outcomes.exit_code == without.exit_code == pytest.ExitCode.TESTS_FAILED
    assert {name for name, outcome in without.outcomes.items() if outcome == "failure"} == FAILED
    assert {name for name, outcome in without.outcomes.items() if outcome == "skipped"} == SKIPPED
    assert {name for name, outcome in without.outcomes.items() if outcome == "error"} == {
        "test_setup_fails",
        "test_teardown_fails",
    }


@pytest.mark.parametrize(("name", "what"), LATER.items(), ids=LATER)
def test_a_later_call_fails_the_measurement_not_the_test(outcomes: Session, name: str, what: str) -> None:
    assert outcomes.outcomes[name] == "passed"
    measurement = outcomes.result(name).measurement
    assert measurement.status == "error"
    assert measurement.reason == (
        f"cannot be repeated: {what}. Build the state inside the test, take the opprof fixture and step "
        "yourself, or set warmup=0, active=1"
    )


def test_summary_names_unrepeatable_tests(outcomes: Session) -> None:
    text = " ".join(outcomes.stdout.split())
    assert (
        "test_it.py::test_makes_a_folder: ERROR: cannot be repeated: call 2 raised FileExistsError. Build "
        "the state inside the test, take the opprof fixture and step yourself, or set warmup=0, active=1"
    ) in text
    outcomes.lines.fnmatch_lines(
        ["6 in error, 11 measured * nothing dropped * 5 tests failed, not compared * 5 other tests not run"]
    )


@pytest.mark.parametrize("name", sorted(PASSED))
def test_tests_that_pass_every_call_are_measured(outcomes: Session, name: str) -> None:
    test = outcomes.result(name)
    assert test.measurement.reason == ""
    assert test.steps == 2


def test_assertions_explain_themselves(outcomes: Session) -> None:
    assert "At index 1 diff: 2 != 5" in outcomes.failures["test_fails"]
    assert "plugin/" not in outcomes.failures["test_fails"]


def test_output_is_captured_with_its_test(outcomes: Session) -> None:
    assert outcomes.stdout.count("the test said this") == 3 + 2  # calls of the schedule and counted calls
    outcomes.lines.fnmatch_lines(["*_ test_prints _*", "*Captured stdout call*", "the test said this"])


def test_warnings_are_the_tests_own(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import gc, threading, warnings
        import pytest
        from pytest_opprof import ProfilerAction, record_function

        CALLS = []

        @pytest.mark.profile
        def test_warns():
            warnings.warn("mine")

        @pytest.mark.profile
        def test_looks_at_its_warnings(recwarn):
            CALLS.append(0)
            warnings.warn(f"call {len(CALLS)}", DeprecationWarning)
            assert recwarn.pop(DeprecationWarning)

        @pytest.mark.profile(limits={"work.count": 1})
        def test_warns_of_old_code():
            warnings.warn("each time", DeprecationWarning)
            with record_function("work"):
                pass

        @pytest.mark.profile(schedule=lambda step: ProfilerAction(min(step, 3)))
        def test_quiet():
            with record_function("work"):
                threading.Thread(target=gc.collect).start()
        """,
    )
    session = project.pytest("-W", "default", "-W", "always::DeprecationWarning")
    assert session.exit_code == 0
    # Each warning counts once, although we called the tests several times, and its line warns in each call.
    session.lines.fnmatch_lines(["1 passed, 3 measured * nothing dropped", "*4 passed, 2 warnings in*"])


def test_coverage_is_unchanged(project: Project) -> None:
    pytest.importorskip("coverage")
    project.write(
        "test_it.py",
        """\
        import coverage, importlib, pytest, sys

        @pytest.mark.profile
        def test_it():
            sys.modules.pop("under_test", None)
            measured = coverage.Coverage(data_file=None, source=["."])
            with measured.collect():
                importlib.import_module("under_test").used()
            _, _, missing, _ = measured.analysis("under_test.py")
            assert missing == [5]
        """,
    )
    project.write("under_test.py", "def used():\n    return 1\n\ndef unused():\n    return 2\n")
    session = project.pytest()
    assert session.exit_code == 0
    assert session.result("test_it").steps == 3
