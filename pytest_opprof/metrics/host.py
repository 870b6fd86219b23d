"""Metrics of the host: calls, times, memory, FLOPs, compilations, instructions.

A metric is an entry here and an item of a tuple at the end. Saved runs, their schema, tables, gates, history,
counts files and docs/metrics.md follow from that.
"""

from __future__ import annotations

from typing import Final

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics.fingerprint import GUEST, LIBRARIES
from pytest_opprof.metrics.metric import ColumnSum, Family, RowSum, Slack, Source, of_op, total
from pytest_opprof.units import Unit

# Calling a new function takes some ten: refactoring a short test stays below this.
_LEAST: Final = 200
# How many more a short call may take if the heap has another layout.
_LEAST_NATIVE: Final = 2_000

COUNT = of_op("count", "count", Unit.COUNT, column="count")
# The ops of the count that returned an input and ran no op but views. Not a gate by itself.
VIEWS = of_op("views", "views", Unit.COUNT, Source.OPS, column="views")
CPU_TIME_TOTAL = of_op("cpu_time_total", "CPU total", Unit.NS, family=Family.TIME, column="total_ns")
SELF_CPU_TIME_TOTAL = of_op("self_cpu_time_total", "self CPU", Unit.NS, family=Family.TIME, column="self_ns")
# Bytes taken less given back, including children.
CPU_MEMORY = of_op("cpu_memory", "CPU memory", Unit.BYTES, Source.MEMORY, is_signed=True, column="cpu_memory")
FLOPS = of_op("flops", "FLOPs", Unit.FLOPS, Source.FLOPS, column="flops")
# Of the tensors given to an op, or to the ops inside it, whichever is more. An expanded tensor counts with
# its size in memory, and a view reads nothing.
BYTES = of_op("bytes", "bytes", Unit.BYTES, Source.WORK, column="bytes")
# Nodes added to autograd's graph in an op, including children.
NODES = of_op("nodes", "graph nodes", Unit.COUNT, Source.WORK, column="nodes")
# Bytes taken in an op, including children, and still in use when the step ended.
RETAINED = of_op("retained", "retained memory", Unit.BYTES, Source.RETAINED, column="retained")

OPS_COUNT = total(
    "ops.count",
    "ops",
    Unit.COUNT,
    Source.OPS,
    summed=RowSum(metric=COUNT.name, less=VIEWS.name, kind=OpKind.OP),
)
# Ops that launch and copy nothing: they return an input. `ops.count` does not include them.
VIEWS_COUNT = total(
    "views.count", "views", Unit.COUNT, Source.OPS, is_free=True, summed=RowSum(metric=VIEWS.name)
)
RANGES_COUNT = total(
    "ranges.count",
    "ranges",
    Unit.COUNT,
    Source.RANGES,
    summed=RowSum(metric=COUNT.name, kind=OpKind.RANGE),
)
# Only the part of a column that no enclosing op includes.
FLOPS_TOTAL = total(
    "flops.total", "FLOPs", Unit.FLOPS, Source.FLOPS, summed=ColumnSum(column="counted_flops")
)
OPS_BYTES = total(
    "ops.bytes", "bytes given to ops", Unit.BYTES, Source.WORK, summed=ColumnSum(column="counted_bytes")
)
AUTOGRAD_NODES = total(
    "autograd.nodes", "graph nodes", Unit.COUNT, Source.WORK, summed=ColumnSum(column="counted_nodes")
)
CPU_MEMORY_ALLOCATED = total("cpu_memory.allocated", "allocated memory", Unit.BYTES, Source.MEMORY)
CPU_MEMORY_PEAK = total("cpu_memory.peak", "peak memory", Unit.BYTES, Source.MEMORY, family=Family.BOUNDED)
CPU_MEMORY_ALLOCATIONS = total("cpu_memory.allocations", "allocations", Unit.COUNT, Source.MEMORY)
# On the host and on devices. Gradients that replace those of the previous step are retained too.
MEMORY_RETAINED = total(
    "memory.retained",
    "retained memory",
    Unit.BYTES,
    Source.RETAINED,
    summed=ColumnSum(column="counted_retained"),
)
# What torch.compile did in a step: a warm step compiles nothing.
GRAPHS = total("compile.graphs", "compiled graphs", Unit.COUNT, Source.COMPILE)
# Functions compiled again, because one of their guards failed.
RECOMPILES = total("compile.recompiles", "recompilations", Unit.COUNT, Source.COMPILE)
GRAPH_BREAKS = total("compile.graph_breaks", "graph breaks", Unit.COUNT, Source.COMPILE)
# Of steps without a profiler: a further call of the test, or from one of its own steps to the next.
WALL_TIME = total("wall_time", "wall time", Unit.NS, None, family=Family.TIME)
TOTAL_SELF_CPU_TIME = total(
    "total.self_cpu_time_total",
    "self CPU",
    Unit.NS,
    None,
    family=Family.TIME,
    summed=RowSum(metric=SELF_CPU_TIME_TOTAL.name),
)

# Work that no op shows: the Python and machine instructions of a further call of the test.
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
# Of all code, including the interpreter and its libraries, under `opprof replay`.
NATIVE_INSTRUCTIONS = total(
    "native.instructions",
    "machine instructions",
    Unit.COUNT,
    Source.REPLAY,
    family=Family.BOUNDED,
    slack=Slack(percent=2, least=_LEAST_NATIVE),
    # A loop that ends by the clock or by chance varies in machine instructions too.
    steady_with=(PYTHON_INSTRUCTIONS.name, LIBRARY_INSTRUCTIONS.name),
    fields=frozenset({LIBRARIES, GUEST}),
)

# The tables; saved runs and printed tables have this order.
HOST_METRICS = (COUNT, CPU_TIME_TOTAL, SELF_CPU_TIME_TOTAL, CPU_MEMORY, FLOPS, BYTES, NODES, RETAINED)
HOST_COUNTS = (OPS_COUNT, VIEWS_COUNT, RANGES_COUNT)
HOST_AMOUNTS = (
    OPS_BYTES,
    AUTOGRAD_NODES,
    FLOPS_TOTAL,
    CPU_MEMORY_ALLOCATED,
    CPU_MEMORY_PEAK,
    CPU_MEMORY_ALLOCATIONS,
)
COMPILE_TOTALS = (GRAPHS, RECOMPILES, GRAPH_BREAKS)
HOST_TIMES = (TOTAL_SELF_CPU_TIME, WALL_TIME)
INSTRUCTION_TOTALS = (PYTHON_INSTRUCTIONS, LIBRARY_INSTRUCTIONS)
