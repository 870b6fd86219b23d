"""What torch.compile did in a step: a step that is warm compiles nothing."""

from __future__ import annotations

from typing import Final

from pytest_opprof.metrics.metric import Source, total
from pytest_opprof.units import Unit

GRAPHS = total("compile.graphs", "compiled graphs", Unit.COUNT, Source.COMPILE)
# Of functions that were compiled before: one of their guards failed.
RECOMPILES = total("compile.recompiles", "recompilations", Unit.COUNT, Source.COMPILE)
GRAPH_BREAKS = total("compile.graph_breaks", "graph breaks", Unit.COUNT, Source.COMPILE)
COMPILE_TOTALS: Final = (GRAPHS, RECOMPILES, GRAPH_BREAKS)
