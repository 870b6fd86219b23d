"""Shows pytest-opprof catch a regression: saves a baseline, adds ops to the code, and runs the failing test.

The demo copies the suite in this folder to a temporary one and saves its baseline there. Then it applies a
real regression to the copy's sources and runs the suite against the baseline. It exits with 0 if pytest's
JUnit report has the failed test and names the op there, and the run's JSON file has more calls of the op than
the baseline's; otherwise with 1.
"""

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

CAUGHT, NOT_CAUGHT, USAGE = 0, 1, 2
BASE = "base"
EDITABLE = (
    "ignore:Module already imported so cannot be rewritten; _editable:pytest.PytestAssertRewriteWarning"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A regression: an edit of one source line, the test that must fail, and the op that it must name."""

    name: str
    story: str
    file: str
    before: str
    after: str
    test: str
    op: str
    needs_torch: bool = True

    def edited(self, source: str) -> str:
        """Return the source with the regression."""
        if source.count(self.before) != 1:
            msg = (
                f"{self.file} has {source.count(self.before)} places for the mutation {self.name!r}, not one"
            )
            raise ValueError(msg)
        return source.replace(self.before, self.after)


MUTATIONS = (
    Mutation(
        name="clone",
        story="a layer takes a defensive copy of its input",
        file="model.py",
        before="hidden + self.attention(hidden)",
        after="hidden + self.attention(hidden.clone())",
        test="test_training_step",
        op="aten::clone",
    ),
    Mutation(
        name="item",
        story="the training step reads its loss back as a number",
        file="model.py",
        before="        loss.backward()\n",
        after="        self.last_loss = loss.item()\n        loss.backward()\n",
        test="test_training_step",
        op="aten::item",
    ),
    Mutation(
        name="copy",
        story="the scores are copied once more on the host",
        file="model.py",
        before="scores = self.model(tokens)",
        after='scores = self.model(tokens).to("cpu", copy=True)',
        test="test_training_step",
        op="aten::copy_",
    ),
    Mutation(
        name="layer",
        story="the encoder has one more layer",
        file="model.py",
        before="LAYERS = 2",
        after="LAYERS = 3",
        test="test_inference",
        op="aten::linear",
    ),
    Mutation(
        name="stage",
        story="a stage of the NumPy pipeline runs twice",
        file="pipeline.py",
        before="prepared = windowed(prepared)",
        after="prepared = windowed(windowed(prepared))",
        test="test_loudest_frequency",
        op="pipeline: window",
        needs_torch=False,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A copy of this folder's tests, in its own Git repository if Git is installed."""

    folder: Path
    reports: Path

    def pytest(self, *options: str, report: str) -> int:
        """Run the suite visibly, write both reports, and return pytest's exit code."""
        say(f"$ pytest {shlex.join(options)}")
        # Leave out noise of others: pytest-asyncio warns about its settings, pytest-randomly shuffles, and
        # pytest warns about the import hook of an editable install.
        quiet = ("-p", "no:asyncio", "-p", "no:randomly", "-W", EDITABLE)
        kept = (f"--junitxml={self.reports / report}.xml", f"--opprof-json={self.reports / report}.json")
        command = [sys.executable, "-m", "pytest", *options, *quiet, *kept]
        return subprocess.run(command, cwd=self.folder, env=environment(), check=False).returncode

    @contextmanager
    def regressed(self, mutation: Mutation) -> Iterator[None]:
        """Apply the mutation to the sources, and undo it at the end."""
        path = self.folder / mutation.file
        source = path.read_text(encoding="utf-8")
        path.write_text(mutation.edited(source), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")

    def failures(self, report: str) -> dict[str, str]:
        """Return the failure text of each failed test in a JUnit report, by test name."""
        # pytest has just written the file, so its XML is not hostile.
        junit = ET.parse(self.reports / f"{report}.xml")  # noqa: S314
        return {
            case.get("name", ""): "\n".join(filter(None, [failure.get("message"), failure.text]))
            for case in junit.iter("testcase")
            for failure in (*case.findall("failure"), *case.findall("error"))
        }

    def calls(self, report: str, mutation: Mutation) -> int:
        """Return how often a step of the mutation's test ran its op, from a run's JSON file."""
        path = self.reports / f"{report}.json"
        run = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"tests": []}
        counts = [
            op["metrics"]["count"]
            for test in run["tests"]
            for op in test["ops"]
            if test["node_id"].endswith(f"::{mutation.test}") and op["name"] == mutation.op
        ]
        return max((count for count in counts if isinstance(count, int)), default=0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code."""
    chosen = parse(arguments)
    if chosen is None:
        return USAGE
    with tempfile.TemporaryDirectory(prefix="opprof-demo-") as temporary:
        suite = copied(Path(temporary))
        say(f"The example suite, copied to {suite.folder}: its baseline is recorded first.")
        if suite.pytest("--opprof-save=main", report=BASE):
            say("NOT CAUGHT: the unchanged examples do not pass, so there is no baseline to compare with.")
            return NOT_CAUGHT
        missed = [mutation.name for mutation in chosen if not caught(suite, mutation)]
    if missed:
        say(f"NOT CAUGHT: {', '.join(missed)}")
        return NOT_CAUGHT
    say(f"Caught, and the op named: {', '.join(mutation.name for mutation in chosen)}")
    return CAUGHT


def parse(arguments: Sequence[str] | None) -> tuple[Mutation, ...] | None:
    """Return the mutations to show, or None if they need torch and it is not installed."""
    parser = argparse.ArgumentParser(description="Watch a test fail because its code got more ops.")
    names = [mutation.name for mutation in MUTATIONS]
    parser.add_argument(
        "--mutation", choices=[*names, "all"], help="the regression (default: clone; stage without torch)"
    )
    asked = parser.parse_args(arguments).mutation
    has_torch = importlib.util.find_spec("torch") is not None
    shown = tuple(mutation for mutation in MUTATIONS if has_torch or not mutation.needs_torch)
    if not has_torch:
        say("torch is not installed: only the NumPy pipeline can be shown, not the Transformer.")
    if asked is None:
        return shown[:1]
    if asked == "all":
        return shown
    return tuple(mutation for mutation in shown if mutation.name == asked) or None


def copied(temporary: Path) -> Suite:
    """Copy the suite, make a folder for pytest's reports, and commit the copy if Git is installed."""
    folder, reports = temporary / "examples", temporary / "reports"
    shutil.copytree(
        Path(__file__).parent,
        folder,
        ignore=shutil.ignore_patterns("demo.py", "__pycache__", ".opprof", ".pytest_cache"),
    )
    reports.mkdir()
    if shutil.which("git"):
        committer = ("-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false")
        for command in (
            ("init", "-q", "-b", "main"),
            ("add", "-A"),
            (*committer, "commit", "-q", "-m", "Examples"),
        ):
            subprocess.run(["git", *command], cwd=folder, env=environment(), check=True)
    return Suite(folder=folder, reports=reports)


def caught(suite: Suite, mutation: Mutation) -> bool:
    """Apply a regression, run the suite against the baseline, and print and return whether it was caught."""
    say(f"Mutation {mutation.name!r}: {mutation.story} ({mutation.file}).")
    print(textwrap.indent(f"- {mutation.before.strip()}\n+ {mutation.after.strip()}\n", "    "))
    with suite.regressed(mutation):
        code = suite.pytest("--opprof-baseline=main", report=mutation.name)
    failures = suite.failures(mutation.name)
    strangers = failures.keys() - tests_beside(mutation)
    text = failures.get(mutation.test, "")
    before, after = suite.calls(BASE, mutation), suite.calls(mutation.name, mutation)
    if code != 1 or "REGRESSED" not in text:
        say(f"{mutation.test} did not regress (pytest ended with {code}).")
    elif mutation.op not in text:
        say(f"{mutation.test} regressed, but {mutation.op} is not named.")
    elif strangers:
        say(f"Tests that never see the change failed too: {', '.join(sorted(strangers))}.")
    elif after <= before:
        say(f"The documents have no more calls of {mutation.op}: {before} a step before, {after} after.")
    else:
        say(f"Caught: {mutation.test} failed, and {mutation.op} is named ({before} a step, now {after}).")
        return True
    return False


def tests_beside(mutation: Mutation) -> set[str]:
    """Return the tests that run the mutated file, and so may fail."""
    return {"test_training_step", "test_inference"} if mutation.needs_torch else {mutation.test}


def environment() -> dict[str, str]:
    """Return the environment for pytest and Git, without variables of an outer pytest-xdist or Git hook."""
    left_out = ("PYTEST_XDIST_", "PYTEST_CURRENT_TEST", "GIT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    # The same file is edited within seconds, so Python could mistake old bytecode for the new source's.
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}


def say(text: str) -> None:
    """Print a line of the demo, set apart from pytest's output."""
    print(f"\n>>> {text}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
