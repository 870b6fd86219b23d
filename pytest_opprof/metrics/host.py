"""What is measured on the host: calls, times, memory, FLOPs, compilations.

A metric is an entry here and a line in one of the tuples at the end. Documents, their schema, tables, gates,
history, counts files and docs/metrics.md follow from that.
"""

from __future__ import annotations

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics.metric import ColumnSum, Family, RowSum, Source, of_op, total
from pytest_opprof.units import Unit

COUNT = of_op("count", "count", Unit.COUNT, column="count")
# Of the count, the ops that gave back what they were given, and ran no other. No gate of its own.
VIEWS = of_op("views", "views", Unit.COUNT, Source.OPS, column="views")
CPU_TIME_TOTAL = of_op("cpu_time_total", "CPU total", Unit.NS, family=Family.TIME, column="total_ns")
SELF_CPU_TIME_TOTAL = of_op("self_cpu_time_total", "self CPU", Unit.NS, family=Family.TIME, column="self_ns")
# Bytes taken less given back, children included.
CPU_MEMORY = of_op("cpu_memory", "CPU memory", Unit.BYTES, Source.MEMORY, is_signed=True, column="cpu_memory")
FLOPS = of_op("flops", "FLOPs", Unit.FLOPS, Source.FLOPS, column="flops")
# Of the tensors that an op was given, or the ops inside it, whichever is more. What was broadcast lies in
# memory once, and a view reads nothing.
BYTES = of_op("bytes", "bytes", Unit.BYTES, Source.WORK, column="bytes")
# Nodes of autograd's graph that were made in an op, children included.
NODES = of_op("nodes", "graph nodes", Unit.COUNT, Source.WORK, column="nodes")
# Bytes that were taken in an op, or in the ops inside it, and were still in use when the step ended.
RETAINED = of_op("retained", "retained memory", Unit.BYTES, Source.RETAINED, column="retained")

OPS_COUNT = total(
    "ops.count",
    "ops",
    Unit.COUNT,
    Source.OPS,
    summed=RowSum(metric=COUNT.name, less=VIEWS.name, kind=OpKind.OP),
)
# Ops that launch and copy nothing: what they give back is what they were given. They are not part of the ops.
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
# Of what a column has for each op, only what is not in an op around it too.
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
# Of the host and of devices. Gradients that replace those of the step before are retained too.
MEMORY_RETAINED = total(
    "memory.retained",
    "retained memory",
    Unit.BYTES,
    Source.RETAINED,
    summed=ColumnSum(column="counted_retained"),
)
# What torch.compile did in a step: a step that is warm compiles nothing.
GRAPHS = total("compile.graphs", "compiled graphs", Unit.COUNT, Source.COMPILE)
# Of functions that were compiled before: one of their guards failed.
RECOMPILES = total("compile.recompiles", "recompilations", Unit.COUNT, Source.COMPILE)
GRAPH_BREAKS = total("compile.graph_breaks", "graph breaks", Unit.COUNT, Source.COMPILE)
# Of steps without a profiler, from outside: of a further call of the test, or up to its own next step.
WALL_TIME = total("wall_time", "wall time", Unit.NS, None, family=Family.TIME)
TOTAL_SELF_CPU_TIME = total(
    "total.self_cpu_time_total",
    "self CPU",
    Unit.NS,
    None,
    family=Family.TIME,
    summed=RowSum(metric=SELF_CPU_TIME_TOTAL.name),
)

# The table: in this order documents and tables have them.
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
