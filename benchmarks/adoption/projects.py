"""The projects, and the sessions that each of them is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project of the package index, in two releases.

    Attributes:
        name: As pip knows it.
        older: The release that the baseline is saved on.
        newer: The release that is compared with it.
        tests: Paths of its tests that run within a minute, or all of them where the suite is that small.
        tag: How its repository names a release, where the sdists have no tests; "" where they do.
        taken: Paths of the repository that the sdists lack, those that a release has.
        options: Given to pytest besides.
        variables: Set in the environment of the sessions.
    """

    name: str
    older: str
    newer: str
    tests: tuple[str, ...]
    tag: str = ""
    taken: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


PROJECTS: Final = (
    # All tests. Other backends than these two are not installed.
    Project(
        name="einops",
        older="0.8.1",
        newer="0.8.2",
        tests=("einops/tests",),
        variables=(("EINOPS_TEST_BACKENDS", "numpy,torch"),),
    ),
    # Colours, for which there are figures of before, and losses. The whole suite takes an hour, most of it in
    # gradient checks.
    Project(
        name="kornia",
        older="0.7.3",
        newer="0.8.2",
        tests=("tests/color", "tests/losses"),
        tag="v{}",
        taken=("tests", "testing", "conftest.py"),
    ),
    # Kernels and what they are made of; the examples of test/examples train models for minutes.
    Project(
        name="gpytorch",
        older="1.11",
        newer="1.15",
        tests=("test/kernels", "test/likelihoods", "test/distributions"),
    ),
    # Attribution to layers and neurons; the tests of inputs and of data-parallel models take minutes.
    Project(
        name="captum",
        older="0.6.0",
        newer="0.8.0",
        tests=("tests/attr/layer", "tests/attr/neuron"),
        tag="v{}",
        taken=("tests", "captum/testing"),
    ),
    # Layers, whose tests script each of them; data sets would be downloaded.
    Project(
        name="torch_geometric",
        older="2.5.3",
        newer="2.7.0",
        tests=("test/nn/conv",),
        tag="{}",
        # The newer release's tests fail on warnings, and torch 2.13 warns of torch.jit.
        options=("-W", "ignore::DeprecationWarning"),
        taken=("test",),
    ),
    # No torch: all counts are 0, so this is the cost alone. Algorithms make up most of the suite.
    Project(
        name="networkx",
        older="3.4.2",
        newer="3.6.1",
        tests=("networkx/algorithms/centrality", "networkx/classes"),
    ),
)
# What the suites import besides torch, and what runs them.
REQUIREMENTS: Final = (
    "jaxtyping",
    "kornia_rs",
    "linear_operator",
    "matplotlib",
    "parameterized",
    "psutil",
    "pyparsing",
    "pytest-cov",
    "requests",
    "scikit-learn",
    "tqdm",
    "xxhash",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One run of a project's tests.

    Attributes:
        title: A word for it.
        options: Of pytest.
        rounds: How often it runs, by turns with the one before it; the least time counts.
        newer: It runs the newer release's tests.
        compares: With the baseline, so that there are verdicts.
        certain: The code is the baseline's, so each failure is a false alarm.
    """

    title: str
    options: tuple[str, ...]
    rounds: int = 1
    newer: bool = False
    compares: bool = False
    certain: bool = False


_MARKED: Final = ("-p", "opprof", "--opprof-mark=.")
_COMPARED: Final = (*_MARKED, "--opprof-baseline=main")

SESSIONS: Final = (
    Session(title="plain", options=(), rounds=2),
    Session(title="unmarked", options=("-p", "opprof"), rounds=2),
    Session(title="marked", options=_MARKED),
    Session(title="save", options=(*_MARKED, "--opprof-save=main")),
    Session(title="same code", options=_COMPARED, compares=True, certain=True),
    Session(title="same code again", options=_COMPARED, compares=True, certain=True),
    Session(
        title="random order",
        options=(*_COMPARED, "-p", "randomly", "-p", "no:xdist", "--randomly-dont-reset-seed"),
        compares=True,
        certain=True,
    ),
    Session(title="two workers", options=(*_COMPARED, "-p", "xdist", "-n", "2"), compares=True, certain=True),
    Session(title="newer", options=_COMPARED, newer=True, compares=True),
)
