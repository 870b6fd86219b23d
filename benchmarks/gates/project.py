"""Makes a small project in a git repository, on which the gates are tried."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

# Four steps. One op takes nearly all of a step's time, so a slower op means a slower test.
STEPS: Final = ("compress", "json_dump", "regex_find", "dict_build")
_UNITS: Final = 40
# The extra units that make an op slower by so many percent.
SLOWER: Final = {5: _UNITS // 20, 10: _UNITS // 10, 20: _UNITS // 5}

_OPS: Final = """
import array, base64, bisect, collections, fractions, hashlib, heapq, itertools, json, math, pickle, random
import re, statistics, string, struct, textwrap, unicodedata, zlib

from extra import EXTRA

_random = random.Random(1)
_bytes = bytes(_random.randrange(256) for _ in range(4_000))
_packed = zlib.compress(_bytes * 4)
_numbers = [_random.random() for _ in range(400)]
_whole = [_random.randrange(10_000) for _ in range(400)]
_words = ["".join(_random.choices(string.ascii_lowercase, k=6)) for _ in range(200)]
_text = " ".join(_words)
_tree = {word: [at, at / 3, word] for at, word in enumerate(_words[:50])}
_json, _pickle = json.dumps(_tree), pickle.dumps(_tree)
_accents = _text.replace("a", "\u00e4")
_vowels, _sorted = re.compile(r"[aeiou]+(\\w)"), sorted(_whole)
_even, _odd = set(_whole[::2]), set(_whole[1::2])


def _heap():
    heap = _whole[:100]
    heapq.heapify(heap)
    return [heapq.heappop(heap) for _ in range(50)]


def _steps(count):
    return count if count < 2 else _steps(count - 1) + 1


OPS = {
    "array_copy": lambda: array.array("d", _numbers).tobytes(),
    "base64_code": lambda: base64.b64decode(base64.b64encode(_bytes)),
    "bisect_find": lambda: [bisect.bisect(_sorted, value) for value in _whole[:100]],
    "bytes_find": lambda: _bytes.count(b"a"),
    "compress": lambda: zlib.compress(_bytes[:1_000], 3),
    "counter": lambda: collections.Counter(_text),
    "crc": lambda: zlib.crc32(_bytes * 4),
    "decompress": lambda: zlib.decompress(_packed),
    "deque_turn": lambda: collections.deque(_whole).rotate(100),
    "dict_build": lambda: {word: at for at, word in enumerate(_words)},
    "dict_merge": lambda: _tree | dict.fromkeys(_words),
    "digest_blake": lambda: hashlib.blake2b(_bytes).digest(),
    "digest_sha": lambda: hashlib.sha256(_bytes).digest(),
    "float_sum": lambda: math.fsum(_numbers),
    "fraction": lambda: fractions.Fraction(355, 113) + fractions.Fraction(22, 7),
    "group": lambda: [key for key, _ in itertools.groupby(_sorted)],
    "heap": _heap,
    "int_power": lambda: pow(12_345_678_901, 1_001, 10**40 + 121),
    "json_dump": lambda: json.dumps(_tree),
    "json_load": lambda: json.loads(_json),
    "list_build": lambda: [value * 2 for value in _whole],
    "list_sort": lambda: sorted(_numbers[:200]),
    "median": lambda: statistics.median(_numbers),
    "pickle_load": lambda: pickle.loads(_pickle),
    "recursion": lambda: _steps(100),
    "regex_find": lambda: _vowels.findall(_text),
    "regex_replace": lambda: _vowels.sub("-", _text),
    "set_union": lambda: _even | _odd,
    "str_format": lambda: [f"{value:.3f}" for value in _numbers[:50]],
    "str_split": lambda: _text.split(),
    "struct_pack": lambda: struct.pack("400d", *_numbers),
    "wrap": lambda: textwrap.wrap(_text[:200], 40),
    "unicode": lambda: unicodedata.normalize("NFKD", _accents),
}


def run(name, units):
    op = OPS[name]
    for _ in range(units + EXTRA.get(name, 0)):
        op()
"""

_PROFILED: Final = """
import pytest
from pytest_opprof import record_function

from ops import OPS, run


@pytest.mark.profile(warmup=1, active=3)
@pytest.mark.parametrize("name", OPS)
def test_op(name):
    with record_function(name):
        run(name, 10)
"""

_STEPPED: Final = """
import pytest
from pytest_opprof import record_function

from ops import run


@pytest.mark.profile(warmup=1, active=5)
@pytest.mark.parametrize("name", {steps!r})
def test_step(name):
    for each, units in (("str_split", 1), (name, {units}), ("float_sum", 2)):
        with record_function(each):
            run(each, units)
"""

# Steps of some milliseconds with torch's default number of threads, like the tests that people mark.
_TORCH: Final = """
import pytest
import torch
from torch import nn


def encoder():
    model = nn.TransformerEncoderLayer(64, 4, dim_feedforward=128, batch_first=True)
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(8, 32, 64)

    def step():
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    return step


def images():
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3))
    data = torch.randn(8, 3, 32, 32)
    return lambda: model(data).mean().backward()


def recurrent():
    model = nn.LSTM(32, 64, batch_first=True).eval()
    data = torch.randn(8, 24, 32)

    def step():
        with torch.inference_mode():
            model(data)

    return step


def tensors():
    data = torch.randn(256, 256)

    def step():
        values, order = torch.topk(torch.softmax(data @ data, dim=1), 8)
        torch.zeros_like(data).scatter_(1, order, values).sort(dim=1)

    return step


@pytest.fixture(params=[encoder, images, recurrent, tensors], ids=lambda made: made.__name__)
def step(request):
    torch.manual_seed(1)
    return request.param()


@pytest.mark.profile
def test_model(step):
    step()
"""

_BENCHED: Final = """
import pytest

from ops import OPS, run


@pytest.mark.parametrize("name", OPS)
def test_op(benchmark, name):
    benchmark(run, name, 10)
"""

_FILES: Final = {
    "pytest.ini": "[pytest]\npythonpath = .\naddopts = -p no:cacheprovider\n",
    "ops.py": _OPS,
    "extra.py": "EXTRA = {}\n",
    "test_ops.py": _PROFILED,
    "test_torch.py": _TORCH,
    "test_steps.py": _STEPPED.format(steps=STEPS, units=_UNITS),
    "bench_ops.py": _BENCHED,
    ".gitignore": ".opprof/\n.benchmarks/\n__pycache__/\n",
    "README": "A project that becomes slower.\n",
}
_SETTINGS: Final = ("user.name=gates", "user.email=gates@localhost", "commit.gpgsign=false")

# Identifies the project's version, so that trials of two versions are never mixed.
DIGEST: Final = hashlib.sha256(repr(_FILES).encode()).hexdigest()[:12]


def write(folder: Path, *, slower: dict[str, int]) -> None:
    """Make a repository of two commits: the project, and the project with these ops slower.

    Args:
        folder: An empty folder.
        slower: The extra units that each op runs. If empty, the second commit changes no code.
    """
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _commit(folder, "a project")
    changed = "extra.py" if slower else "README"
    (folder / changed).write_text(f"EXTRA = {slower!r}\n", encoding="utf-8")
    _commit(folder, "a change")


def _environment() -> dict[str, str]:
    """The environment of a trial's processes, which load only the plugins that a trial names.

    It hides pytest-xdist (a test may start a trial), because pytest-benchmark measures nothing in a worker.
    """
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": ""}
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST_")} | own


def session(
    folder: Path, plugin: str, tests: str, *options: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project, with one plugin."""
    return run(folder, [python, "-m", "pytest", "-q", "-p", plugin, tests, *options])


def run(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a project; `stdout` has all of its output."""
    return subprocess.run(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "-m", message)


def _git(folder: Path, *arguments: str) -> None:
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, stdin=subprocess.DEVNULL)
