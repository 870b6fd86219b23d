"""More of everything than anybody has: the rest is counted, and nothing breaks."""

from pathlib import Path

import pytest
from support.programs.children import answer_of

MOST_NAMES = 2**20 - 2  # (overflow) is one of them, and one number means none
DEEPEST = 2**16 - 1
NOTHING_LOST = {"dropped": 0, "truncated": False, "overflowed": 0, "unfinished": 0}

PRELUDE = """
    import json, sys, threading
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges"}))

    def enter(name):
        entered = record_function(name)
        entered.__enter__()
        return entered

    def tell(recording, **more):
        stats = recording.stats
        print(json.dumps({
            "events": stats.events, "dropped": stats.dropped, "truncated": stats.truncated,
            "threads": stats.threads, "overflowed": stats.names_overflowed,
            "unfinished": sum(flags != 0 for flags in recording.flags), **more,
        }))
"""


@pytest.fixture(autouse=True)
def session_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the session files, which must be empty afterwards."""
    monkeypatch.setenv("OPPROF_DIR", str(tmp_path))


def test_ranges_past_the_deepest_are_counted() -> None:
    said = answer_of(
        PRELUDE
        + """
    collector.start()
    ranges = [enter("deep") for _ in range(70_000)]
    while ranges:
        ranges.pop().__exit__()
    enter("after").__exit__()
    recording = collector.stop()
    tell(recording, parents=[recording.parent[event] for event in (0, 1, 65_534, 65_535)])
    """
    )
    assert said == {
        "events": DEEPEST + 1,
        "dropped": 70_000 - DEEPEST,
        "truncated": False,
        "threads": 1,
        "overflowed": 0,
        "unfinished": 0,
        "parents": [-1, 0, 65_533, -1],
    }


def test_a_thousand_threads_record_at_once() -> None:
    said = answer_of(
        PRELUDE
        + """
    THREADS = 1_000
    everybody = threading.Barrier(THREADS)

    def work():
        with record_function("outer"):
            everybody.wait()
            for _ in range(10):
                with record_function("inner"):
                    pass
            everybody.wait()

    threading.stack_size(256 << 10)
    collector.start()
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell(collector.stop())
    """
    )
    assert said == NOTHING_LOST | {"events": 11_000, "threads": 1_000}


@pytest.mark.slow
def test_ten_thousand_threads_record_one_after_the_other() -> None:
    said = answer_of(
        PRELUDE
        + """
    def work():
        with record_function("work"):
            pass

    collector.start()
    for _ in range(10_000):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    tell(collector.stop())
    """
    )
    assert said == NOTHING_LOST | {"events": 10_000, "threads": 10_000}


@pytest.mark.slow
def test_names_past_the_last_share_one_and_are_counted() -> None:
    said = answer_of(
        PRELUDE
        + """
    collector.start()
    for number in range(1_100_000):
        with record_function(f"name {number}"):
            pass
    recording = collector.stop()
    last = len(recording) - 1
    tell(recording, first=recording.name(0), last=recording.name(last))
    """
    )
    assert said["events"] == 1_100_000
    assert said["overflowed"] == 1_100_000 - MOST_NAMES
    assert (said["first"], said["last"]) == ("name 0", "(overflow)")
    assert (said["dropped"], said["truncated"], said["unfinished"]) == (0, False, 0)
