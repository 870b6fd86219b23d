"""What is measured on the host: calls, times, memory, FLOPs."""

from __future__ import annotations

from pytest_opprof.metrics.metric import Family, Source, of_op, total
from pytest_opprof.units import Unit

COUNT = of_op("count", "count", Unit.COUNT)
CPU_TIME_TOTAL = of_op("cpu_time_total", "CPU total", Unit.NS, family=Family.TIME)
SELF_CPU_TIME_TOTAL = of_op("self_cpu_time_total", "self CPU", Unit.NS, family=Family.TIME)
CPU_MEMORY = of_op("cpu_memory", "CPU memory", Unit.BYTES, Source.MEMORY)
FLOPS = of_op("flops", "FLOPs", Unit.FLOPS, Source.FLOPS)

OPS_COUNT = total("ops.count", "ops", Unit.COUNT, Source.OPS)
# Ops that launch and copy nothing: what they give back is what they were given. They are no part of the ops.
VIEWS_COUNT = total("views.count", "views", Unit.COUNT, Source.OPS, is_free=True)
RANGES_COUNT = total("ranges.count", "ranges", Unit.COUNT, Source.RANGES)
FLOPS_TOTAL = total("flops.total", "FLOPs", Unit.FLOPS, Source.FLOPS)
CPU_MEMORY_ALLOCATED = total("cpu_memory.allocated", "allocated memory", Unit.BYTES, Source.MEMORY)
CPU_MEMORY_PEAK = total("cpu_memory.peak", "peak memory", Unit.BYTES, Source.MEMORY, family=Family.BOUNDED)
CPU_MEMORY_ALLOCATIONS = total("cpu_memory.allocations", "allocations", Unit.COUNT, Source.MEMORY)
# Of steps without a profiler, from outside: of a further call of the test, or up to its own next step.
WALL_TIME = total("wall_time", "wall time", Unit.NS, None, family=Family.TIME)
TOTAL_SELF_CPU_TIME = total("total.self_cpu_time_total", "self CPU", Unit.NS, None, family=Family.TIME)
