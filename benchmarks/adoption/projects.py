"""The projects, and the sessions that run for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Two releases of a project on the package index.

    Attributes:
        name: Its name on the index.
        older: The release whose baseline is saved.
        newer: The release that is compared with it.
        tests: Paths of tests that run within a minute; all of them if the suite is that small.
        tag: The format of its repository's release tags; "" if the sdists have tests.
        taken: Paths to take from the repository if a release has them, because the sdists lack them.
        options: Extra options for pytest.
        variables: Environment variables for the sessions.
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
    # All tests. No other backends are installed.
    Project(
        name="einops",
        older="0.8.1",
        newer="0.8.2",
        tests=("einops/tests",),
        variables=(("EINOPS_TEST_BACKENDS", "numpy,torch"),),
    ),
    # Colours, which have older figures, and losses. The whole suite takes an hour, mostly in gradient checks.
    Project(
        name="kornia",
        older="0.7.3",
        newer="0.8.2",
        tests=("tests/color", "tests/losses"),
        tag="v{}",
        taken=("tests", "testing", "conftest.py"),
    ),
    # Kernels and their parts; test/examples trains models for minutes.
    Project(
        name="gpytorch",
        older="1.11",
        newer="1.15",
        tests=("test/kernels", "test/likelihoods", "test/distributions"),
    ),
    # Attribution to layers and neurons; tests of inputs and data-parallel models take minutes.
    Project(
        name="captum",
        older="0.6.0",
        newer="0.8.0",
        tests=("tests/attr/layer", "tests/attr/neuron"),
        tag="v{}",
        taken=("tests", "captum/testing"),
    ),
    # Layers; the tests script each one. Data sets would have to be downloaded.
    Project(
        name="torch_geometric",
        older="2.5.3",
        newer="2.7.0",
        tests=("test/nn/conv",),
        tag="{}",
        # The newer release's tests fail on warnings, and torch 2.13 deprecates torch.jit.
        options=("-W", "ignore::DeprecationWarning"),
        taken=("test",),
    ),
    # No torch: all op counts are 0, so this shows the cost alone. Algorithms make up most of the suite.
    Project(
        name="networkx",
        older="3.4.2",
        newer="3.6.1",
        tests=("networkx/algorithms/centrality", "networkx/classes"),
    ),
)
# Packages that the suites and their sessions need besides torch.
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
        title: Its name on the page.
        options: Options for pytest.
        rounds: How often it runs, alternating with other repeated sessions; the fastest round counts.
        newer: It runs the newer release's tests.
        compares: It compares with the baseline, so tests have verdicts.
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
