"""An A/B to a document and back: a comparison of the exact gates, with the times under ``times``."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import comparison_from_document, comparison_to_document
from pytest_opprof.compare.timing.comparison import TestTimes, TimeComparison, TimeSettings
from pytest_opprof.results.document import contradiction, refuse_repeats
from pytest_opprof.results.files import read_document, shown, write_document
from pytest_opprof.results.members import Document, from_members, to_members
from pytest_opprof.results.schema import Contract
from pytest_opprof.units import EVERY_PPM


def write_time_comparison(path: Path, comparison: TimeComparison) -> None:
    """Write an A/B; ``.gz`` at the end of the name packs it."""
    write_document(path, time_comparison_to_document(comparison), Contract.COMPARISON)


def read_judged(path: Path) -> Comparison | TimeComparison:
    """Read a comparison, with the times of an A/B if it has them."""
    document = read_document(path, Contract.COMPARISON)
    read = time_comparison_from_document if "times" in document else comparison_from_document
    return read(document, where=shown(path))


def time_comparison_to_document(comparison: TimeComparison) -> Document:
    """An A/B in the shape of comparison.schema.json."""
    settings = comparison.settings
    times = to_members(
        comparison,
        exact=None,
        settings={
            "min_effect_ppm": round(settings.min_effect * EVERY_PPM),
            "max_noise_ppm": round(settings.max_noise * EVERY_PPM),
            "least_processes": settings.least_processes,
        },
    )
    del times["exact"]  # around the times
    return comparison_to_document(comparison.exact) | {"times": times}


def time_comparison_from_document(document: Document, *, where: str) -> TimeComparison:
    """The A/B that a document holds, which comparison.schema.json accepted."""
    times = document["times"]
    settings = times["settings"]
    refuse_repeats((test["node_id"] for test in times["tests"]), where=where, path="times.tests")
    exact = comparison_from_document(document, where=where)
    if untimed := {test.node_id for test in exact.tests} - {test["node_id"] for test in times["tests"]}:
        raise contradiction(where, path="times.tests", what=f"{min(untimed)} is not among them")
    return from_members(
        TimeComparison,
        times,
        exact=exact,
        settings=TimeSettings(
            min_effect=Fraction(settings["min_effect_ppm"], EVERY_PPM),
            max_noise=Fraction(settings["max_noise_ppm"], EVERY_PPM),
            least_processes=settings["least_processes"],
        ),
        tests=tuple(
            _test_from_document(test, where=where, path=f"times.tests[{index}]")
            for index, test in enumerate(times["tests"])
        ),
    )


def _test_from_document(document: Document, *, where: str, path: str) -> TestTimes:
    test = from_members(TestTimes, document)
    for name, sides in (("times", test.times), ("confirmation", test.confirmation)):
        if sides is not None and not (sides.base_ns and sides.head_ns):
            raise contradiction(where, path=f"{path}.{name}", what="a side has no processes")
    return test
