"""Memos of code and frames never apply to others at reused addresses."""

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import answer_of
from support.programs.ops_recording import noting, recorded

from pytest_opprof import record_function
from pytest_opprof.capture.call_sites import SITES
from pytest_opprof.capture.collector import Collector

LIBRARY = json.__file__


@pytest.fixture
def collector() -> Iterator[Collector]:
    with noting(SITES) as collector:
        yield collector


def test_reused_code_addresses_are_distinguished(collector: Collector, tmp_path: Path) -> None:
    files = [LIBRARY, str(tmp_path / "own.py")]

    def step() -> None:
        for number in range(50):
            code = compile("with mark('ends'): pass", files[number % 2], "exec")
            exec(code, {"mark": record_function})  # noqa: S102
            del code

    calls = Counter[str]()
    for row in recorded(collector, step).called_from():
        calls[Path(row.site.file).name] += row.calls
    assert calls == {Path(__file__).name: 25, Path(files[1]).name: 25}


def functions(file: str, names: Iterable[str]) -> dict[str, Callable[[list[Any]], None]]:
    """Functions that differ only in name and file: each calls the first of others, or has a range."""
    text = "def {}(others):\n  if others: others[0](others[1:])\n  else:\n    with mark('ends'): pass\n"
    found: dict[str, Any] = {"mark": record_function}
    for name in names:
        exec(compile(text.format(name), file, "exec"), found)  # noqa: S102
    return {name: found[name] for name in names}


def test_reused_frame_addresses_are_distinguished(collector: Collector, tmp_path: Path) -> None:
    """Equally large frames, repeatedly at the same addresses, of an installed package or the user."""
    own = functions(str(tmp_path / "own.py"), [f"own{i}" for i in range(4)])
    every = [*own.items(), *functions(LIBRARY, [f"lib{i}" for i in range(12)]).items()]
    draw = random.Random(0)  # noqa: S311  # no secret
    expected = Counter[str]()
    before: list[Any] = []
    chains = []
    for _ in range(3000):
        kept = before[: draw.randrange(len(before) + 1)]
        before = [*kept, *draw.choices(every, k=draw.randrange(1, 12))]
        chains.append([function for _, function in before])
        users = [name for name, _ in before if name in own]
        expected[users[-1] if users else "step"] += 1

    def step() -> None:
        for first, *others in chains:
            first(others)

    calls = Counter[str]()
    for row in recorded(collector, step).called_from():
        calls[row.site.function.rpartition(".")[2]] += row.calls
    assert calls == expected


def test_a_library_folder_may_be_no_utf8() -> None:
    folder = os.fsdecode(b"/caf\xe9/site-packages")
    program = f"""
import json, sys
sys.path.append({folder!r})
from pytest_opprof import record_function
from pytest_opprof.capture.call_sites import SITES
from pytest_opprof.capture.collector import Collector

collector, found = Collector.instance(), []
collector.open(sources=frozenset({{"ranges", SITES}}))
for window in range(2):
    collector.start()
    collector.step_begin(0)
    for file in ({folder + "/library.py"!r}, "/caf\\udce9/own.py"):
        exec(compile("with mark('ends'): pass", file, "exec"), {{"mark": record_function}})
    collector.step_end()
    found.append([row.site.file for row in collector.stop().called_from()])
print(json.dumps(found))
"""
    assert answer_of(program) == [["/caf\udce9/own.py"]] * 2
