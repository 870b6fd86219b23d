"""Work of Python code that no op shows: the bytecodes of a further call of the test, by its own thread."""

from __future__ import annotations

from typing import Final

from pytest_opprof.metrics.fingerprint import LIBRARIES
from pytest_opprof.metrics.metric import Slack, Source, total
from pytest_opprof.units import Unit

# A call of a new function takes some ten: refactorings of short tests come and go below this.
_LEAST: Final = 200

PYTHON_INSTRUCTIONS = total(
    "python.instructions",
    "Python instructions",
    Unit.COUNT,
    Source.INSTRUCTIONS,
    slack=Slack(percent=1, least=_LEAST),
)
# In the interpreter's files and in installed ones, and in code that is in no file.
LIBRARY_INSTRUCTIONS = total(
    "python.library_instructions",
    "library instructions",
    Unit.COUNT,
    Source.INSTRUCTIONS,
    slack=Slack(percent=1, least=_LEAST),
    fields=frozenset({LIBRARIES}),
)
# The exponent between a test's two largest sizes: 1 for twice the work on twice as much, 2 for four times.
# For limits: less constant work beside the loop raises it too.
SCALING = total(
    "python.scaling", "growth", Unit.THOUSANDTHS, Source.SCALING, is_free=True, fields=frozenset({LIBRARIES})
)
INSTRUCTION_TOTALS: Final = (PYTHON_INSTRUCTIONS, LIBRARY_INSTRUCTIONS)
