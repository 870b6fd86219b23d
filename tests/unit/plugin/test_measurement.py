"""What a document can keep of a measurement."""

import pytest
from support.documents.strategies import simple_test

from pytest_opprof.errors import MeasurementError
from pytest_opprof.plugin.measurement import checked
from pytest_opprof.results.samples import Samples
from pytest_opprof.units import MOST_IN_JSON


@pytest.mark.parametrize(
    "samples",
    [
        Samples.constant(MOST_IN_JSON + 1, steps=1),
        Samples.of([1, MOST_IN_JSON + 1]),
        Samples.of([1, MOST_IN_JSON, MOST_IN_JSON]).summarized(),
    ],
    ids=["each", "one", "sum"],
)
def test_totals_beyond_a_document_are_refused(samples: Samples) -> None:
    test = simple_test({}, steps=samples.steps, totals={"flops.total": samples})
    with pytest.raises(MeasurementError, match=r"flops\.total is above 9007199254740991"):
        checked(test)


@pytest.mark.parametrize(
    "samples", [Samples.constant(MOST_IN_JSON, steps=3), Samples.of([1, MOST_IN_JSON, MOST_IN_JSON])]
)
def test_totals_that_fit_a_document_are_kept(samples: Samples) -> None:
    test = simple_test({}, steps=samples.steps, totals={"flops.total": samples})
    assert checked(test) is test
