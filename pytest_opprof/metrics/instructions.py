"""Work that no op shows: the instructions of a further call of the test, Python's and the machine's."""

from __future__ import annotations

from typing import Final

from pytest_opprof.metrics.fingerprint import GUEST, LIBRARIES
from pytest_opprof.metrics.metric import Family, Slack, Source, total
from pytest_opprof.units import Unit

# A call of a new function takes some ten: refactorings of short tests come and go below this.
_LEAST: Final = 200
# What a short call may take more where the heap lies otherwise.
_LEAST_NATIVE: Final = 2_000

# Bytecodes, by the thread of the test.
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
    # Where the project's own code takes other ways, what it calls may agree by luck.
    steady_with=(PYTHON_INSTRUCTIONS.name,),
    fields=frozenset({LIBRARIES}),
)
# The exponent between a test's two largest sizes: 1 for twice the work on twice as much, 2 for four times.
# For limits: less constant work beside the loop raises it too.
SCALING = total(
    "python.scaling", "growth", Unit.THOUSANDTHS, Source.SCALING, is_free=True, fields=frozenset({LIBRARIES})
)
INSTRUCTION_TOTALS: Final = (PYTHON_INSTRUCTIONS, LIBRARY_INSTRUCTIONS)
# Of all code, the interpreter's and its libraries' too, under `opprof replay`.
NATIVE_INSTRUCTIONS = total(
    "native.instructions",
    "machine instructions",
    Unit.COUNT,
    Source.REPLAY,
    family=Family.BOUNDED,
    slack=Slack(percent=2, least=_LEAST_NATIVE),
    # A loop that ends by a clock, or by chance, runs more machine instructions on another day too.
    steady_with=tuple(metric.name for metric in INSTRUCTION_TOTALS),
    fields=frozenset({LIBRARIES, GUEST}),
)
