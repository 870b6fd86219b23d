"""Settings and fixtures of all tests, such as the guard on torch's profiler."""

import gc
import importlib.util
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from support.cuda import fake_cuda as fake_cuda_module
from support.forges.object_store import ObjectStore
from support.programs.native_programs import build
from support.proofs import proofs_ran

TESTS = Path(__file__).parent
TORCH_GUARD = TESTS / "torch_guard"
ALLOW_TORCH_PROFILER = "OPPROF_TESTS_ALLOW_TORCH_PROFILER"

# "default" tries the same examples each time, so that a pull request fails only because of its own change.
hypothesis.settings.register_profile(
    "default", max_examples=25, deadline=None, derandomize=True, database=None
)
hypothesis.settings.register_profile("all", max_examples=1000, deadline=None, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    """Set the number of examples, guard torch's profiler here and in children, share one observer build."""
    proofs_ran.hear(config)
    hypothesis.settings.load_profile("all" if full_counts() else "default")
    # A shell that runs this in the background ignores SIGINT, and child processes would inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # With nohup the same holds for SIGHUP. This handler ignores the signal too, but children do not inherit it.
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    python_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(TORCH_GUARD) not in python_path:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(TORCH_GUARD), *filter(None, python_path)])
    guard = importlib.util.spec_from_file_location("torch_guard", TORCH_GUARD / "sitecustomize.py")
    assert guard is not None
    assert guard.loader is not None
    guard.loader.exec_module(importlib.util.module_from_spec(guard))
    if config.pluginmanager.has_plugin("cacheprovider") and config.cache is not None:
        # pytester gives each test its own home: without this, each would build the torch observer again.
        os.environ.setdefault("OPPROF_CACHE_DIR", str(config.cache.mkdir("observer")))


def full_counts() -> bool:
    return os.environ.get("OPPROF_COUNTS") == "all"


@pytest.fixture(autouse=True)
def _torch_profiler_guard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if TESTS / "oracle" in request.path.parents:
        monkeypatch.setenv(ALLOW_TORCH_PROFILER, "oracle")


@pytest.fixture
def torch_profiler_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow torch's profiler, for a test of its ITT emitter."""
    monkeypatch.setenv(ALLOW_TORCH_PROFILER, "asked for")


@pytest.fixture(scope="module")
def torch() -> Iterator[Any]:
    """Torch on one thread: with several threads, the order of ops is undefined."""
    module = pytest.importorskip("torch")
    threads = module.get_num_threads()
    module.set_num_threads(1)
    yield module
    module.set_num_threads(threads)


@pytest.fixture
def torch_collector(torch: Any) -> Iterator[None]:
    """A collector that records torch ops. A window that a failed test left open is closed."""
    from support.programs.windows import RANGES_AND_OPS

    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    collector.open(sources=RANGES_AND_OPS)
    assert collector.problems == {}
    yield
    if collector.recording:
        collector.stop()


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """No garbage collection, which would free tensors wherever it happens to run."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def large_counts() -> bool:
    return full_counts()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return TESTS.parent


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """An S3 server on loopback."""
    for library in ("moto", "s3fs"):
        pytest.importorskip(library, reason=f"{library} is not installed: see the dev extra")
    store = ObjectStore.start()
    yield store
    store.stop()


@pytest.fixture
def object_store_variables(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process and its children find the S3 server."""
    for name, value in object_store.variables.items():
        monkeypatch.setenv(name, value)
    yield
    # fsspec caches clients, and a test may have pointed one elsewhere.
    pytest.importorskip("fsspec").get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture(scope="session")
def traces(repository: Path) -> Path:
    """The folder of real traces from accelerators, which are not in the repository."""
    folder = Path(os.environ.get("OPPROF_TRACES", repository.parent / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip(f"no folder of real traces at {folder}: set OPPROF_TRACES to one")
    return folder


@pytest.fixture
def real_trace(repository: Path, request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Find a real trace by name: one in the repository, else one in `traces`."""

    def find(name: str) -> Path:
        own: Path = repository / "tests" / "data" / "traces" / name
        return own if own.exists() else request.getfixturevalue("traces") / name

    return find


@pytest.fixture(scope="session")
def fake_cuda_folder(repository: Path) -> Path:
    """The fake libcuda and libcupti, built; skips without NVIDIA's headers."""
    folder = build(repository, "fake_cupti") / "fake_cupti"
    if not (folder / "cupti-12").is_dir() or not (folder / "cupti-13").is_dir():
        pytest.skip("no headers of CUPTI 12.9 and 13.0 beside this interpreter: see the dev extra")
    return folder


@pytest.fixture(scope="session")
def fake_cuda_variables(fake_cuda_folder: Path) -> dict[str, str]:
    """Variables with which a program can import `support.cuda.fake_cuda` and load its libraries."""
    return {
        fake_cuda_module.LIBRARIES: str(fake_cuda_folder),
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ["PYTHONPATH"]]),
    }


@pytest.fixture
def fake_cuda(fake_cuda_variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs that the test starts import `support.cuda.fake_cuda` and load its libraries."""
    for name, value in fake_cuda_variables.items():
        monkeypatch.setenv(name, value)
