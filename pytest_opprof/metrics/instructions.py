"""Work that no op shows: the Python and machine instructions of a further call of the test."""

from __future__ import annotations

from typing import Final

from pytest_opprof.metrics.fingerprint import GUEST, LIBRARIES
from pytest_opprof.metrics.metric import Family, Slack, Source, total
from pytest_opprof.units import Unit

# Calling a new function takes some ten: refactoring a short test stays below this.
_LEAST: Final = 200
# How many more a short call may take if the heap has another layout.
_LEAST_NATIVE: Final = 2_000

# Bytecodes of the project's own files, run by the test's thread.
PYTHON_INSTRUCTIONS = total(
    "python.instructions",
    "Python instructions",
    Unit.COUNT,
    Source.INSTRUCTIONS,
    slack=Slack(percent=1, least=_LEAST),
)
# Bytecodes of the standard library, of installed packages, and of code in no file.
LIBRARY_INSTRUCTIONS = total(
    "python.library_instructions",
    "library instructions",
    Unit.COUNT,
    Source.INSTRUCTIONS,
    slack=Slack(percent=1, least=_LEAST),
    # If the project's own code takes another path, its library calls may agree by luck.
    steady_with=(PYTHON_INSTRUCTIONS.name,),
    fields=frozenset({LIBRARIES}),
)
# The exponent between a test's two largest sizes: if the size doubles, 1 is twice the work, 2 four times.
# Meant for limits: less constant work beside the loop raises it too.
SCALING = total(
    "python.scaling", "growth", Unit.THOUSANDTHS, Source.SCALING, is_free=True, fields=frozenset({LIBRARIES})
)
INSTRUCTION_TOTALS: Final = (PYTHON_INSTRUCTIONS, LIBRARY_INSTRUCTIONS)
# Of all code, including the interpreter and its libraries, under `opprof replay`.
NATIVE_INSTRUCTIONS = total(
    "native.instructions",
    "machine instructions",
    Unit.COUNT,
    Source.REPLAY,
    family=Family.BOUNDED,
    slack=Slack(percent=2, least=_LEAST_NATIVE),
    # A loop that ends by the clock or by chance varies in machine instructions too.
    steady_with=tuple(metric.name for metric in INSTRUCTION_TOTALS),
    fields=frozenset({LIBRARIES, GUEST}),
)
