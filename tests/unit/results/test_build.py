"""From groups of a recording to rows, totals and a tree."""

from dataclasses import replace

from support.kineto.made_groups import EMPTY, Node, cycle, op, row

from pytest_opprof.events.user_frames import Place
from pytest_opprof.kinds import EventKind, OpKind
from pytest_opprof.results.build import (
    DETAILED_OPS,
    MAX_LINE,
    MAX_OPS,
    MAX_PLACES,
    MAX_TREE_NODES,
    with_calls,
    with_measurement,
)
from pytest_opprof.results.names import MAX_NAME
from pytest_opprof.results.rows import MAX_LISTED_STEPS
from pytest_opprof.results.samples import Samples
from pytest_opprof.statement import statement_at


def test_rows_keep_each_step() -> None:
    test = with_measurement(EMPTY, [cycle(op("aten::mul", 3, 4))])
    assert test.steps == 2
    assert row(test, "aten::mul").count == Samples.of([3, 4])
    assert row(test, "aten::mul").self_cpu_time_total_ns == Samples.of([15, 20])


def test_cycles_follow_one_another() -> None:
    test = with_measurement(EMPTY, [cycle(op("aten::mul", 1, 2)), cycle(op("aten::add", 3, 4))])
    assert row(test, "aten::mul").count == Samples.of([1, 2, 0, 0])
    assert row(test, "aten::add").count == Samples.of([0, 0, 3, 4])


def test_groups_of_one_key_become_one_row() -> None:
    test = with_measurement(EMPTY, [cycle(op("aten::mul", 1, 1), op("aten::mul", 2, 2, is_async=True))])
    assert row(test, "aten::mul").count == Samples.constant(3, steps=2)
    assert row(test, "aten::mul").is_async


def test_totals_leave_out_ranges_and_background() -> None:
    groups = (
        op("aten::mul", 2, 2),
        op("forward", 1, 1, kind=EventKind.RANGE),
        op("torch range", 1, 1, is_user_annotation=True),
        op("ProfilerStep*", 1, 1, kind=EventKind.RANGE),
        op("aten::add", 0, 0, background=True, count=7, total_ns=70, self_ns=7),
    )
    totals = with_measurement(EMPTY, [cycle(*groups)]).totals
    assert totals["ops.count"] == Samples.constant(2, steps=2)
    assert totals["ranges.count"] == Samples.constant(2, steps=2)
    assert totals["total.self_cpu_time_total"] == Samples.constant(5 * 5, steps=2)


def test_totals_need_their_source() -> None:
    test = with_measurement(replace(EMPTY, sources=("ranges",)), [cycle(op("aten::mul", 2, 2))])
    assert "ops.count" not in test.totals
    assert "ranges.count" in test.totals


def test_background_belongs_to_no_step() -> None:
    background = op("aten::add", 0, 0, background=True, count=7, total_ns=70, self_ns=7)
    found = row(with_measurement(EMPTY, [cycle(background)]), "aten::add")
    assert found.background
    assert (found.count.total, found.count.low, found.count.high) == (7, 0, 7)


def test_marks_and_strays_are_not_rows() -> None:
    groups = (op("note", 1, 1, kind=EventKind.MARK), op("aten::warmup", 0, 0, count=3))
    assert with_measurement(EMPTY, [cycle(*groups)]).ops == ()


def test_kinds_are_separate_rows() -> None:
    groups = (
        op("x", 1, 1),
        op("y", 1, 1, kind=EventKind.RANGE),
        op("z", 1, 1, kind=EventKind.PYTHON_CALL),
        op("w", 1, 1, is_user_annotation=True),
        op("cudaLaunchKernel", 1, 1, kind=EventKind.RUNTIME),
    )
    test = with_measurement(EMPTY, [cycle(*groups)])
    kinds = {found.name: found.kind for found in test.ops}
    assert kinds == {
        "x": OpKind.OP,
        "y": OpKind.RANGE,
        "z": OpKind.CALL,
        "w": OpKind.RANGE,
        "cudaLaunchKernel": OpKind.CALL,
    }


def test_instants_and_non_work_are_not_rows() -> None:
    groups = (
        op("x", 1, 1),
        op("[memory]", 1, 1, kind=EventKind.MEMORY),
        op("Stream Sync", 1, 1, kind=EventKind.SYNC, device_type=1),
        op("forward", 1, 1, kind=EventKind.DEVICE_RANGE, device_type=1),
    )
    assert [found.name for found in with_measurement(EMPTY, [cycle(*groups)]).ops] == ["x"]


def test_costliest_ops_keep_step_times() -> None:
    groups = [
        op(f"op{i}", 1, 1, each_step={"self_ns": (1000 - i, 1001 - i), "total_ns": (1, 2)})
        for i in range(DETAILED_OPS + 5)
    ]
    ops = with_measurement(EMPTY, [cycle(*groups)]).ops
    assert [found.name for found in ops[:2]] == ["op0", "op1"]
    assert [found.self_cpu_time_total_ns.values is not None for found in ops] == [True] * DETAILED_OPS + [
        False
    ] * 5
    assert all(found.count.is_exact for found in ops)


def test_watched_ops_survive_the_cap() -> None:
    cheap = op("aten::item", 1, 1, each_step={"self_ns": (0, 0)})
    groups = [op(f"op{i}", 1, 1) for i in range(MAX_OPS + 3)]
    test = with_measurement(EMPTY, [cycle(*groups, cheap)])
    assert len(test.ops) == MAX_OPS
    assert test.ops_omitted == 4
    assert row(test, "aten::item").count == Samples.constant(1, steps=2)
    assert test.totals["ops.count"] == Samples.constant(MAX_OPS + 4, steps=2)


def test_long_schedules_keep_ranges_of_counts() -> None:
    steps = MAX_LISTED_STEPS + 1
    test = with_measurement(EMPTY, [cycle(op("aten::mul", *range(steps)), steps=steps)])
    count = row(test, "aten::mul").count
    assert (count.values, count.low, count.high) == (None, 0, steps - 1)


def test_parent_is_the_most_frequent_caller() -> None:
    tree = (
        Node(parent=-1, name="ProfilerStep*"),
        Node(parent=0, name="aten::clone", count=2),
        Node(parent=1, name="aten::copy_", count=2),
        Node(parent=0, name="aten::to", count=3),
        Node(parent=3, name="aten::copy_", count=3),
    )
    test = with_measurement(
        EMPTY, [cycle(op("aten::copy_", 5, 5), op("aten::clone", 2, 2), op("aten::to", 3, 3), tree=tree)]
    )
    assert row(test, "aten::copy_").parent_op == "aten::to"
    assert row(test, "aten::clone").parent_op is None


def test_trees_of_cycles_are_joined_by_path() -> None:
    one = (Node(parent=-1, name="a", count=1), Node(parent=0, name="b", count=2, self_ns=5))
    two = (Node(parent=-1, name="c"), Node(parent=-1, name="a", count=1), Node(parent=1, name="b", count=3))
    tree = with_measurement(EMPTY, [cycle(tree=one), cycle(tree=two)]).tree
    assert [(node.parent, node.name, node.count) for node in tree] == [
        (-1, "a", 2),
        (0, "b", 5),
        (-1, "c", 1),
    ]


def test_large_trees_are_cut_with_their_branches() -> None:
    tree = tuple(Node(parent=i - 1, name=f"n{i}") for i in range(MAX_TREE_NODES + 50))
    kept = with_measurement(EMPTY, [cycle(tree=tree)]).tree
    assert len(kept) == MAX_TREE_NODES
    assert all(node.parent < index for index, node in enumerate(kept))


def test_long_names_are_cut() -> None:
    test = with_measurement(EMPTY, [cycle(op("x" * 5000, 1, 1))])
    assert len(test.ops[0].name) == MAX_NAME


def test_no_cycles_give_no_steps() -> None:
    test = with_measurement(EMPTY, [])
    assert (test.steps, test.ops) == (0, ())
    assert test.totals["ops.count"] == Samples.constant(0, steps=0)


def test_calls_are_ordered_after_ops() -> None:
    """However long they take: recording calls must not displace an op."""
    calls = [
        op(f"f{i}", 1, 1, kind=EventKind.PYTHON_CALL, each_step={"self_ns": (900, 900)})
        for i in range(DETAILED_OPS + 1)
    ]
    test = with_measurement(EMPTY, [cycle(*calls, op("aten::mul", 1, 2))])
    assert test.ops[0].name == "aten::mul"
    assert test.ops[0].self_cpu_time_total_ns == Samples.of([5, 10])
    assert {row.kind for row in test.ops[1:]} == {OpKind.CALL}


def test_places_are_added_up_over_cycles() -> None:
    f, g = Place("f, a.py:1", "x = a * b"), Place("g, a.py:9", "")
    first = replace(cycle(op("aten::mul", 1, 2)), places={"aten::mul": {f: 2, g: 1}})
    second = replace(cycle(op("aten::mul", 1, 1)), places={"aten::mul": {g: 2}})
    test = with_measurement(EMPTY, [first, second])
    found = row(test, "aten::mul")
    assert found.source == "g, a.py:9"
    assert list(found.places.items()) == [("g, a.py:9", 3), ("f, a.py:1", 2)]
    assert test.lines == {"f, a.py:1": "x = a * b"}


def test_the_busiest_caller_of_a_line_stands_first() -> None:
    line, once, loop = (Place(f"f, a.py:{number}", "") for number in (1, 5, 9))
    callers = ({line: {once: 4, loop: 3}}, {line: {once: 1, loop: 9}})
    cycles = [replace(cycle(op("aten::mul", 1, 1)), callers=one) for one in callers]
    assert with_measurement(EMPTY, cycles).callers == {"f, a.py:1": ("f, a.py:9", "f, a.py:5")}


def test_the_commonest_places_are_kept() -> None:
    places = {"aten::mul": {Place(f"f, a.py:{line}", "x" * 1_000): line for line in range(1, 2 * MAX_PLACES)}}
    test = with_measurement(EMPTY, [replace(cycle(op("aten::mul", 1, 1)), places=places)])
    found = row(test, "aten::mul")
    assert len(found.places) == MAX_PLACES
    last = 2 * MAX_PLACES - 1
    assert found.places[f"f, a.py:{last}"] == last
    assert test.lines == dict.fromkeys(sorted(found.places), "x" * MAX_LINE)


def test_call_site_length_respects_the_schema() -> None:
    long = Place(f"f, {'a' * 5_000}.py:1", "x")
    test = with_measurement(EMPTY, [replace(cycle(op("aten::mul", 1, 1)), places={"aten::mul": {long: 1}})])
    (place,) = row(test, "aten::mul").places
    assert len(place) == 4_096
    assert list(test.lines) == [place]


def test_the_lines_after_opening_brackets_are_kept() -> None:
    """A report shows them with the line, whose own text stays: it is compared with the base's."""
    place = Place("f, a.py:1", "rows = [", ("g(x)", "", "for x in xs", "]"))
    test = with_measurement(EMPTY, [replace(cycle(op("aten::mul", 1, 1)), places={"aten::mul": {place: 1}})])
    kept = {"f, a.py:1": "rows = [", "f, a.py:2": "g(x)", "f, a.py:4": "for x in xs", "f, a.py:5": "]"}
    assert test.lines == kept
    assert with_calls(EMPTY, [("g, a.py", place, 1)]).lines == kept
    assert statement_at("f, a.py:1", kept) == "rows = [g(x) for x in xs]"
