"""Generates programs of calls, edits of them, and their recordings, to test laws of comparisons."""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from support.documents.strategies import simple_test

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import ROW_METRICS
from pytest_opprof.metrics.device import TOTAL_OF_COUNT
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import OpRow, TestResult, TreeNode
from pytest_opprof.results.samples import Samples

UNWATCHED = ("aten::mul", "aten::addmm", "aten::relu", "aten::linear", "forward", "backward")
WATCHED = ("aten::item", "aten::clone", "aten::contiguous")
# each is a view if all its callees are
ALIASING = ("aten::view", "aten::reshape", "aten::contiguous")
# device work of one call, by names of an op's metrics
WORK: dict[str, dict[str, int]] = {
    "kernel": {"kernels": 1, "launches": 1},
    "sync": {"syncs": 1},
    "fill": {"memsets": 1},
    "copy to the host": {
        "copies": 1,
        "host_copies": 1,
        "copies_dtoh": 1,
        "copied_bytes": 64,
        "copied_bytes_dtoh": 64,
    },
    "copy from the host": {
        "copies": 1,
        "host_copies": 1,
        "copies_htod": 1,
        "copied_bytes": 32,
        "copied_bytes_htod": 32,
    },
    "copy on a device": {"copies": 1, "copies_dtod": 1, "copied_bytes": 16, "copied_bytes_dtod": 16},
    "copy between devices": {"copies": 1, "copies_ptop": 1, "copied_bytes": 8, "copied_bytes_ptop": 8},
    "copy on the host": {
        "copies": 1,
        "host_copies": 1,
        "copies_htoh": 1,
        "copied_bytes": 4,
        "copied_bytes_htoh": 4,
    },
    "flops": {"flops": 100},
    "memory": {"cpu_memory": 4_096, "allocations": 1},
    "memory of a device": {"device_memory": 512, "device_allocations": 1},
}
_ROWS_OF_DEVICE = {"kernels": OpKind.KERNEL, "copies": OpKind.MEMCPY, "memsets": OpKind.MEMSET}
_SOURCES = ("ranges", "ops", "cuda", "memory", "memory-cuda", "flops")


@dataclass
class Called:
    """An op or range in a call tree: its calls per step, its own work, its callees."""

    name: str
    count: int = 1
    kernel: str = "gemm"
    inside: list["Called"] = field(default_factory=list)
    work: Counter[str] = field(default_factory=Counter)

    @property
    def is_view(self) -> bool:
        """Whether it returns its input, and only calls ops that do."""
        return self.name in ALIASING and not any(call.runs_ops for call in self.inside)

    @property
    def runs_ops(self) -> bool:
        """Whether it is an op other than a view, or contains one."""
        return (not self.is_view and "::" in self.name) or any(call.runs_ops for call in self.inside)

    def sum(self) -> Counter[str]:
        """The work of it and its callees."""
        return sum((call.sum() for call in self.inside), Counter(self.work))


@dataclass
class Program:
    """The work of a test in each step."""

    calls: list[Called] = field(default_factory=list)
    background: Counter[str] = field(default_factory=Counter)

    def lists(self) -> Iterator[list[Called]]:
        """Every list of siblings, the test's own first."""
        waiting = [self.calls]
        while waiting:
            calls = waiting.pop()
            yield calls
            waiting += [call.inside for call in calls]

    def all(self) -> list[Called]:
        """Every call."""
        return [call for calls in self.lists() for call in calls]

    def names(self) -> list[str]:
        """The names of all calls, each once."""
        return list(dict.fromkeys(call.name for call in self.all()))


def recorded(program: Program, *, steps: int = 2, node_id: str = "tests/test_a.py::test_x") -> TestResult:
    """A complete recording of a program."""
    counts: Counter[str] = Counter()
    views: Counter[str] = Counter()
    inclusive: dict[str, Counter[str]] = {}
    for call, above in _walk(program):
        counts[call.name] += call.count
        views[call.name] += call.count * call.is_view
        if call.name not in above:
            inclusive.setdefault(call.name, Counter()).update(call.sum())
    does = sum((call.sum() for call in program.calls), Counter())
    bare = simple_test(counts, steps=steps, node_id=node_id)
    each = _constants(steps)
    rows = [
        row.with_metrics(
            **{
                name: each(value)
                for name, value in (inclusive[row.name] | Counter(views=views[row.name])).items()
                if value and name in ROW_METRICS
            }
        )
        for row in bare.ops
    ]
    totals = {whole.name: each(does[name]) for name, whole in TOTAL_OF_COUNT.items()}
    totals |= {
        "ops.count": each(bare.totals["ops.count"].low - views.total()),
        "views.count": each(views.total()),
        "flops.total": each(does["flops"]),
        "cpu_memory.allocated": each(does["cpu_memory"]),
        "cpu_memory.allocations": each(does["allocations"]),
        "cpu_memory.peak": each(does["cpu_memory"]),
        "device_memory.allocated": each(does["device_memory"]),
        "device_memory.allocations": each(does["device_allocations"]),
        "device_memory.peak": each(does["device_memory"]),
    }
    return replace(
        bare,
        sources=_SOURCES,
        ops=(*rows, *_device_rows(program, steps=steps), *_background_rows(program, steps=steps)),
        totals={**bare.totals, **totals},
        tree=_tree(program, steps=steps),
    )


def _constants(steps: int) -> Callable[[int], Samples]:
    return lambda value: Samples.constant(value, steps=steps)


def _walk(program: Program) -> Iterator[tuple[Called, frozenset[str]]]:
    waiting: list[tuple[Called, frozenset[str]]] = [(call, frozenset()) for call in program.calls]
    while waiting:
        call, above = waiting.pop()
        yield call, above
        waiting += [(inside, above | {call.name}) for inside in call.inside]


def _device_rows(program: Program, *, steps: int) -> Iterator[OpRow]:
    found: dict[tuple[str, OpKind], Counter[str]] = {}
    for call, _ in _walk(program):
        for metric, kind in _ROWS_OF_DEVICE.items():
            if call.work[metric]:
                name = call.kernel if kind is OpKind.KERNEL else kind.value
                found.setdefault((name, kind), Counter())[call.name] += call.work[metric]
    for (name, kind), by in found.items():
        yield _bare_row(name, kind, by.total(), steps=steps, parent_op=by.most_common(1)[0][0])


def _background_rows(program: Program, *, steps: int) -> Iterator[OpRow]:
    for name, count in program.background.items():
        yield _bare_row(name, OpKind.OP, count, steps=steps, background=True)


def _bare_row(name: str, kind: OpKind, count: int, *, steps: int, **others: Any) -> OpRow:
    return OpRow(
        name=name,
        kind=kind,
        metrics={"count": Samples.constant(count, steps=steps)},
        **others,
    )


def _tree(program: Program, *, steps: int) -> tuple[TreeNode, ...]:
    nodes = [TreeNode(parent=-1, name=STEP_NAME, count=steps, self_ns=0)]
    places: dict[tuple[int, str], int] = {}
    waiting = [(0, call) for call in reversed(program.calls)]
    while waiting:
        parent, call = waiting.pop()
        at = places.setdefault((parent, call.name), len(nodes))
        if at == len(nodes):
            nodes.append(TreeNode(parent=parent, name=call.name, count=0, self_ns=0))
        nodes[at] = replace(nodes[at], count=nodes[at].count + call.count * steps)
        waiting += [(at, inside) for inside in reversed(call.inside)]
    return tuple(nodes)


_names = st.sampled_from([*UNWATCHED, *WATCHED, *ALIASING])
_works = st.lists(st.sampled_from(sorted(WORK)), max_size=2).map(
    lambda names: sum((Counter(WORK[name]) for name in names), Counter[str]())
)
_kernels = st.sampled_from(["gemm", "add_kernel", "fill_kernel"])
_leaves = st.builds(Called, name=_names, count=st.integers(1, 4), kernel=_kernels, work=_works)
_calls = st.recursive(
    _leaves,
    lambda inner: st.builds(
        Called,
        name=_names,
        count=st.integers(1, 4),
        kernel=_kernels,
        inside=st.lists(inner, max_size=3),
        work=_works,
    ),
    max_leaves=6,
)
programs = st.builds(
    Program,
    calls=st.lists(_calls, max_size=4),
    background=st.dictionaries(_names, st.integers(1, 9), max_size=2).map(Counter),
)


def _add(draw: st.DrawFn, program: Program) -> None:
    calls = draw(st.sampled_from(list(program.lists())))
    calls.insert(draw(st.integers(0, len(calls))), draw(_calls))


def _add_watched(draw: st.DrawFn, program: Program) -> None:
    draw(st.sampled_from(list(program.lists()))).append(Called(draw(st.sampled_from(WATCHED))))


def _remove(draw: st.DrawFn, program: Program) -> None:
    calls, at = _place(draw, program)
    del calls[at]


def _rename(draw: st.DrawFn, program: Program) -> None:
    renamed(program, {draw(st.sampled_from(program.names())): _fresh(program)})


def _fuse(draw: st.DrawFn, program: Program) -> None:
    calls, at = _place(draw, program)
    many = calls[at : at + draw(st.integers(1, 3))]
    work = sum((call.sum() for call in many), Counter[str]())
    calls[at : at + len(many)] = [Called(_fresh(program), count=draw(st.integers(1, 2)), work=work)]


def _split(draw: st.DrawFn, program: Program) -> None:
    calls, at = _place(draw, program)
    parts = [Called(f"{_fresh(program)}.{part}", count=calls[at].count) for part in range(2)]
    parts[0].work = calls[at].sum()
    calls[at : at + 1] = parts


def _raise(draw: st.DrawFn, program: Program) -> None:
    draw(st.sampled_from(program.all())).count += draw(st.integers(1, 3))


def _lower(draw: st.DrawFn, program: Program) -> None:
    call = draw(st.sampled_from(program.all()))
    call.count = max(call.count - draw(st.integers(1, 3)), 1)


def _move(draw: st.DrawFn, program: Program) -> None:
    calls, at = _place(draw, program)
    call = calls.pop(at)
    draw(st.sampled_from(list(program.lists()))).append(call)


def _wrap(draw: st.DrawFn, program: Program) -> None:
    calls, at = _place(draw, program)
    many = calls[at : at + draw(st.integers(1, 3))]
    calls[at : at + len(many)] = [Called(_fresh(program), inside=many)]


def _unwrap(draw: st.DrawFn, program: Program) -> None:
    wrappers = [(calls, at) for calls in program.lists() for at, call in enumerate(calls) if call.inside]
    if wrappers:
        calls, at = draw(st.sampled_from(wrappers))
        calls[at : at + 1] = calls[at].inside


def _rename_kernel(draw: st.DrawFn, program: Program) -> None:
    draw(st.sampled_from(program.all())).kernel = f"kernel of {_fresh(program)}"


def _do_more(draw: st.DrawFn, program: Program) -> None:
    draw(st.sampled_from(program.all())).work.update(WORK[draw(st.sampled_from(sorted(WORK)))])


def _do_nothing_else(draw: st.DrawFn, program: Program) -> None:
    draw(st.sampled_from(program.all())).work.clear()


def _background(draw: st.DrawFn, program: Program) -> None:
    program.background[draw(_names)] += draw(st.integers(1, 3))


_ANYWHERE = (_add, _add_watched, _background)
_OF_CALLS = (
    _remove,
    _rename,
    _fuse,
    _split,
    _raise,
    _lower,
    _move,
    _wrap,
    _unwrap,
    _rename_kernel,
    _do_more,
    _do_nothing_else,
)


def _place(draw: st.DrawFn, program: Program) -> tuple[list[Called], int]:
    calls = draw(st.sampled_from([calls for calls in program.lists() if calls]))
    return calls, draw(st.integers(0, len(calls) - 1))


def _fresh(program: Program) -> str:
    return f"my::op{len(program.all())}_{len(program.names())}"


def renamed(program: Program, names: dict[str, str]) -> None:
    """Give calls other names."""
    for call in program.all():
        call.name = names.get(call.name, call.name)


@st.composite
def edits(draw: st.DrawFn, *, most: int = 4) -> tuple[Program, Program]:
    """A program, and an edited version of it."""
    base = draw(programs)
    head = deepcopy(base)
    for _ in range(draw(st.integers(0, most))):
        known = (*_ANYWHERE, *_OF_CALLS) if head.all() else _ANYWHERE
        draw(st.sampled_from(known))(draw, head)
    return base, head
