"""The line to blame: the one whose calls rose, even if code around it moved."""

from dataclasses import replace
from hashlib import sha256

import pytest
from support.documents.strategies import simple_test

from pytest_opprof.compare.call_sites import CallSites
from pytest_opprof.compare.comparison import CallLine
from pytest_opprof.results.build import MAX_PLACES
from pytest_opprof.results.run import TestResult

Lines = dict[int, tuple[str, int]]


def calling(lines: Lines, *, function: str = "f, a.py") -> TestResult:
    """A test whose lines, by number, each call one op N times."""
    test = simple_test({"aten::mul": sum(calls for _, calls in lines.values())})
    places = {f"{function}:{number}": calls for number, (_, calls) in lines.items()}
    texts = {f"{function}:{number}": text for number, (text, _) in lines.items()}
    rows = tuple(replace(row, places=places, source=next(iter(places))) for row in test.ops)
    return replace(test, ops=rows, lines=texts)


def risen(base: TestResult, head: TestResult) -> CallLine | None:
    return CallSites(base, head).risen(base.ops[0] if base.ops else None, head.ops[0])


def line_at(place: str, text: str, *, is_certain: bool = True) -> CallLine:
    function, _, where = place.partition(", ")
    file, _, number = where.partition(":")
    return CallLine(function=function, file=file, number=int(number), text=text, is_certain=is_certain)


BEFORE: Lines = {4: ("x = x * 2", 30), 5: ("y = x * x", 3), 9: ("return y * 0.5", 3)}


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ({4: ("x = x * 2", 30), 5: ("y = x * x", 6), 9: ("return y * 0.5", 3)}, 5),
        ({14: ("x = x * 2", 30), 15: ("y = x * x", 6), 19: ("return y * 0.5", 3)}, 15),
        ({4: ("x = x * 2", 30), 6: ("y = x * x", 3), 7: ("z = y * 3", 3), 9: ("return z * 0.5", 3)}, 7),
        ({4: ("x = x * 2", 30), 5: ("y = x * x * x", 6), 9: ("return y * 0.5", 3)}, 5),
        ({4: ("x = x * 2", 30), 5: ("square = x * x", 3), 9: ("return square * 0.5 * 3", 6)}, 9),
        ({3: ("w = a.mul(b)", 3), 4: ("x = x * 2", 30), 5: ("y = x * x", 3), 9: ("return y * 0.5", 3)}, 3),
        ({4: ("for _ in x: torch.mul(_, 2)", 30), 5: ("y = x * x", 6), 9: ("return y * 0.5", 3)}, 5),
    ],
    ids=["in place", "moved", "new line", "edited", "others edited", "new above", "the busiest rewritten"],
)
def test_the_line_whose_calls_rose_is_named(after: Lines, line: int) -> None:
    assert risen(calling(BEFORE), calling(after)) == line_at(f"f, a.py:{line}", after[line][0])


def calling_from(places: dict[str, int]) -> TestResult:
    """A test whose places each call one op N times, from lines that are not alike."""
    test = simple_test({"aten::mul": sum(places.values())})
    rows = tuple(replace(row, places=places, source=next(iter(places))) for row in test.ops)
    return replace(test, ops=rows, lines={place: sha256(place.encode()).hexdigest() for place in places})


@pytest.mark.parametrize("helper", [2, 5], ids=["nothing rose", "a helper rose"])
def test_line_that_a_full_table_lacked_is_not_new(helper: int) -> None:
    """One of many lines was removed, so one that stayed enters the table."""
    once = [f"f{number}, a.py:{number}" for number in range(MAX_PLACES)]
    base = calling_from({"helper, a.py:999": 2} | dict.fromkeys(once[:-1], 1))
    head = calling_from({"helper, a.py:999": helper} | dict.fromkeys(once[1:], 1))
    found = risen(base, head)
    assert (found.place if found else None) == (None if helper == 2 else "helper, a.py:999")


def test_edited_line_is_blamed_before_its_callee() -> None:
    after = {4: ("x = x * 2", 60), 5: ("y = x * x * x", 6), 9: ("return y * 0.5", 3)}
    assert risen(calling(BEFORE), calling(after)) == line_at("f, a.py:5", "y = x * x * x")


@pytest.mark.parametrize(
    ("after", "line"),
    [
        (
            {4: ("x = x * 2", 30), 5: ("y = wide * x", 3), 9: ("return y * 0.5", 3)},
            ("5", "y = wide * x", True),
        ),
        ({4: ("x = x * 2", 30), 5: ("y = x * x", 3), 9: ("return y * 0.5", 3)}, ("4", "x = x * 2", False)),
    ],
    ids=["one was edited", "none was"],
)
def test_the_edited_line_does_more_in_each_call(after: Lines, line: tuple[str, str, bool]) -> None:
    base, head = calling(BEFORE), calling(after)
    found = CallSites(base, head).risen(base.ops[0], head.ops[0], metric="flops")
    number, text, is_certain = line
    assert found == line_at(f"f, a.py:{number}", text, is_certain=is_certain)


@pytest.mark.parametrize("function", ["renamed, a.py", "f, elsewhere/b.py"])
def test_a_function_may_have_another_name(function: str) -> None:
    after = {40 + number: line for number, line in BEFORE.items()} | {45: ("y = x * x", 4)}
    found = risen(calling(BEFORE), calling(after, function=function))
    assert found == line_at(f"{function}:45", "y = x * x")


def test_half_equal_lines_identify_a_renamed_function() -> None:
    before = {4: ("x * 2", 6), 5: ("x * 3", 1)}
    after = {14: ("x * 2", 6), 15: ("x.exp() - one", 4)}
    found = risen(calling(before), calling(after, function="renamed, a.py"))
    assert found == line_at("renamed, a.py:15", "x.exp() - one")


def test_different_function_is_new() -> None:
    found = risen(calling(BEFORE), calling({4: ("a = b * c", 40)}, function="g, a.py"))
    assert found == line_at("g, a.py:4", "a = b * c")


def test_steps_are_weighed() -> None:
    """Each side counts as often as the other side has steps."""
    base = replace(calling({4: ("x * 2", 10), 5: ("x * 3", 2)}), steps=1)
    head = replace(calling({4: ("x * 2", 30), 5: ("x * 3", 7)}), steps=3)
    assert risen(base, head) == line_at("f, a.py:5", "x * 3")


def test_no_line_is_named_that_did_not_rise() -> None:
    """The rise was called from an unknown line."""
    assert risen(calling(BEFORE), calling(BEFORE)) is None


def test_without_lines_of_the_base_the_busiest_is_a_candidate() -> None:
    base, head = simple_test({"aten::mul": 4}), calling(BEFORE)
    assert risen(base, head) == line_at("f, a.py:4", "x = x * 2", is_certain=False)


def test_a_new_ops_line_is_certain() -> None:
    head = calling(BEFORE)
    assert risen(simple_test({}), head) == line_at("f, a.py:4", "x = x * 2")


def test_line_of_another_function_is_not_a_rewrite() -> None:
    """As many calls as a line had that is gone explain a new line only in the same function."""
    stayed, gone, new = (5, BEFORE[5]), (4, BEFORE[4]), (4, ("torch.addcmul(a, b, c)", 30))
    base = calling(dict([gone, stayed]))
    here, there = calling(dict([stayed])), calling(dict([new]), function="g, a.py")
    places = {**here.ops[0].places, **there.ops[0].places}
    head = replace(base, ops=(replace(base.ops[0], places=places),), lines={**here.lines, **there.lines})
    assert risen(base, head) == line_at("g, a.py:4", "torch.addcmul(a, b, c)")


def together(*tests: TestResult) -> TestResult:
    """The lines of these tests, as those of one op of one test."""
    first = tests[0]
    places = {place: calls for test in tests for place, calls in test.ops[0].places.items()}
    texts = {place: text for test in tests for place, text in test.lines.items()}
    return replace(first, ops=(replace(first.ops[0], places=places),), lines=texts)


def test_line_extracted_to_a_function_is_the_same() -> None:
    before = {4: ("h = self.act(self.a(x))", 6), 5: ("return self.b(h)", 6)}
    helper = calling({9: ("return self.act(self.a(x))", 6)}, function="hidden, a.py")
    new = calling({20: ("model.probe(rows[0])", 1)}, function="main, b.py")
    head = together(calling({5: ("return self.b(h)", 6)}), helper, new)
    assert risen(calling(before), head) == line_at("main, b.py:20", "model.probe(rows[0])")


def test_extracted_part_of_a_line_is_the_same() -> None:
    before = {4: ("y = (weights @ v).transpose(1, 2).reshape(b, t, d)", 3), 5: ("return y @ out", 3)}
    helper = calling({20: ("return weights @ v", 3)}, function="attend, a.py")
    new = calling({30: ("near = embedded @ embedded.t()", 1)}, function="main, b.py")
    head = together(calling({5: before[5]}), helper, new)
    stayed = {"f, a.py:4": "y = attend(weights, v).transpose(1, 2).reshape(b, t, d)"}
    others = replace(head.ops[0], name="aten::reshape", places=dict.fromkeys(stayed, 3))
    head = replace(head, ops=(*head.ops, others), lines={**head.lines, **stayed})
    assert risen(calling(before), head) == line_at("main, b.py:30", "near = embedded @ embedded.t()")


def test_edited_line_binds_the_same_name() -> None:
    """A new line may be more like the old one than what became of it."""
    base = calling({4: ("loss = F.cross_entropy(logits, target)", 1)})
    kept = "loss = F.cross_entropy(logits, target, ignore_index=config.model.pad_token_id)"
    new = "aux = F.cross_entropy(aux_logits, target)"
    assert risen(base, calling({4: (kept, 1), 5: (new, 1)})) == line_at("f, a.py:5", new)


def test_line_with_the_same_value_is_the_same() -> None:
    base = calling({4: ("x = self.conv1(x)", 1)})
    after: Lines = {4: ("skip = self.conv1(x)", 1), 5: ("x = self.conv2(skip)", 1)}
    assert risen(base, calling(after)) == line_at("f, a.py:5", "x = self.conv2(skip)")


def test_line_that_moved_to_another_function_is_the_same() -> None:
    copy, others = "x = x.contiguous()", (("Model", 5), ("Block", 14), ("Head", 23))
    stayed = [
        calling({at: (f"return {name}(x).contiguous()", 1)}, function=f"{name}.forward, a.py")
        for name, at in others
    ]
    base = together(calling({4: (copy, 12)}, function="Model.forward, a.py"), *stayed)
    moved = calling({15: (copy, 12)}, function="Block.forward, a.py")
    new = calling({24: (copy, 1)}, function="Head.forward, a.py")
    assert risen(base, together(moved, new, *stayed)) == line_at("Head.forward, a.py:24", copy)


def test_line_of_a_removed_copy_is_the_same() -> None:
    norm: Lines = {5: ("return x * x.rsqrt()", 6)}
    half = calling({9: ("return x * 0.5", 2)}, function="half, a.py")
    base = together(calling(norm, function="A.norm, a.py"), calling(norm, function="B.norm, b.py"), half)
    more = calling({9: ("return x * 0.5", 4)}, function="half, a.py")
    twice: Lines = {5: ("return x * x.rsqrt()", 12)}
    for function in ("A.norm, a.py", "Base.norm, base.py"):
        head = together(calling(twice, function=function), more)
        assert risen(base, head) == line_at("half, a.py:9", "return x * 0.5")


def test_function_of_the_same_name_in_another_file_is_the_same() -> None:
    """Though a function of another class has more of the same lines."""
    lines: Lines = {4: ("x = self.a(x)", 6), 5: ("return self.b(x)", 6)}
    encoder = {number: (text, 2 * calls) for number, (text, calls) in lines.items()}
    base = together(
        calling(lines, function="Decoder.forward, m.py"), calling(encoder, function="Encoder.forward, m.py")
    )
    head = together(
        calling(
            {4: lines[4], 5: ("return self.b(x) * 2", 6), 6: ("return -x", 6)},
            function="Decoder.forward, d.py",
        ),
        calling(encoder, function="Encoder.forward, e.py"),
    )
    found = risen(base, head)
    assert found is not None
    assert found.function == "Decoder.forward"


def test_renamed_class_is_the_one_that_is_called_as_often() -> None:
    line = "return self.net(x) * self.gain"
    base = calling({4: (line, 2)}, function="Head.forward, m.py")
    head = together(
        calling({4: (line, 12)}, function="Adapter.forward, m.py"),
        calling({14: (line, 2)}, function="Classifier.forward, m.py"),
    )
    assert risen(base, head) == line_at("Adapter.forward, m.py:4", line)


def test_calls_that_several_lines_lost_are_counted_once() -> None:
    before: Lines = {
        at: (f"{name} = {name}.view(shape).transpose(1, 2)", 12) for at, name in enumerate("qkv")
    }
    new = "kv = past.swapaxes(1, 2).reshape(shape)"
    head = together(
        calling({9: ("return part.view(shape).transpose(1, 2)", 24)}, function="split, a.py"),
        calling({20: (new, 24)}),
    )
    assert risen(calling(before), head) == line_at("f, a.py:20", new)


@pytest.mark.parametrize(
    "first", ["hidden * self.input_layernorm_scale", "return hidden * self.scale"], ids=["unlike", "alike"]
)
def test_line_written_anew_on_several_is_the_same(first: str) -> None:
    """Its calls are those of both lines, whether or not one of them is like the old one."""
    base = calling({4: ("return hidden * self.scale + rest * self.gate", 8)}, function="Block.forward, a.py")
    wrapped = {5: (first, 4), 6: ("+ self.residual_gate_parameter * residual", 4)}
    new = "return self.head(x) * self.temperature"
    head = together(
        calling(wrapped, function="Block.forward, a.py"),
        calling({20: (new, 1)}, function="Model.forward, a.py"),
    )
    assert risen(base, head) == line_at("Model.forward, a.py:20", new)


def test_line_extracted_under_other_names_is_the_same() -> None:
    """The function that it was in calls the new one."""
    stayed = {4: ("h = self.norm(h)", 4)}
    long = {5: ("hidden_states = hidden_states * self.scale_parameter + self.shift_parameter", 4)}
    base = calling(stayed | long, function="Block.forward, a.py")
    head = together(
        calling(stayed, function="Block.forward, a.py"),
        calling({12: ("return x * scale + shift", 4)}, function="modulate, a.py"),
        calling({20: ("return self.head(h) * self.temperature", 1)}, function="Model.forward, a.py"),
    )
    callers = {"modulate, a.py:12": ("Block.forward, a.py:5",)}
    place = line_at("Model.forward, a.py:20", "return self.head(h) * self.temperature")
    assert risen(base, replace(head, callers=callers)) == place


def test_lines_extracted_into_one_are_the_same() -> None:
    before = {n: (f"{name} = {name}.view(b, t).transpose(1, 2)", 3) for n, name in enumerate("qkv", start=4)}
    stayed = {8: ("x = x + attended(q, k, v)", 3)}
    helper = calling({20: ("return part.view(b, t).transpose(1, 2)", 9)}, function="split, a.py")
    head = together(calling({8: ("x = x + attended(q, k, v).clone()", 5)}), helper)
    found = risen(calling(before | stayed), head)
    assert found == line_at("f, a.py:8", "x = x + attended(q, k, v).clone()")


def test_rewritten_line_of_a_renamed_function_did_not_rise() -> None:
    before = {4: ("centred = x - x.mean()", 3), 5: ("return centred * scale", 4)}
    after = {4: ("centred = x - x.mean()", 3), 5: ("return torch.mul(scale, y)", 4)}
    new = calling({20: ("return (acc * 3).sum()", 1)}, function="main, b.py")
    head = together(calling(after, function="renamed, a.py"), new)
    assert risen(calling(before), head) == line_at("main, b.py:20", "return (acc * 3).sum()")


def test_reworded_method_of_a_renamed_class_is_the_same() -> None:
    """Of two lines that run as often as the removed one, the similar one existed before."""
    before = calling({4: ("return 2 * grad * x", 3)}, function="Square.backward, a.py")
    new = "return doubled.contiguous().clone() * saved"
    after = calling({5: ("doubled = 2 * grad", 3), 6: (new, 3)}, function="Squared.backward, a.py")
    assert risen(before, after) == line_at("Squared.backward, a.py:6", new)


@pytest.mark.parametrize(
    ("after", "is_of_callers"),
    [
        ({4: ("x = x * 2", 60), 5: ("y = (x * x)", 6), 9: ("return y * 0.5", 6)}, True),
        ({4: ("x = x * 2", 30), 5: ("y = (x * x)", 6), 9: ("return y * 0.5", 3)}, False),
        ({4: ("x = x * 2", 60), 5: ("y = (x * x * x)", 12), 9: ("return y * 0.5", 6)}, False),
        ({5: ("y = (x * x)", 6)}, False),
    ],
    ids=["all lines twice", "one line twice", "one line more often still", "no other line"],
)
def test_callers_are_blamed_if_all_lines_rose(after: Lines, is_of_callers: bool) -> None:
    line = line_at("f, a.py:5", after[5][0])
    sites = CallSites(calling(BEFORE), calling(after))
    assert sites.is_of_callers(line, {5}) is is_of_callers
    assert not sites.is_of_callers(line, {4, 5, 9})  # they may be in a loop now


def test_callers_are_blamed_if_all_lines_of_a_moved_function_rose() -> None:
    twice = {number: (text, calls * 2) for number, (text, calls) in BEFORE.items()}
    sites = CallSites(calling(BEFORE), calling(twice, function="f, elsewhere.py"))
    line = line_at("f, elsewhere.py:5", BEFORE[5][0])
    assert sites.is_of_callers(line, BEFORE)


@pytest.mark.parametrize(
    ("calls", "cloned", "is_of_callers"), [(12, 0, True), (3, 0, False), (12, 12, False)], ids=str
)
def test_callers_are_blamed_if_a_new_functions_only_line_rose(
    calls: int, cloned: int, is_of_callers: bool
) -> None:
    """Unless it does something else too."""
    before, stayed = {4: ("t = t * cos + turned(t) * sin", 3)}, {9: ("return t.flatten()", 3)}
    helper = calling({20: ("return t * cos + turned(t) * sin", calls)}, function="rotate, a.py")
    head = together(calling(stayed), helper)
    other = replace(head.ops[0], name="aten::clone", places={"rotate, a.py:20": cloned} if cloned else {})
    sites = CallSites(calling(before | stayed), replace(head, ops=(*head.ops, other)))
    line = line_at("rotate, a.py:20", "return t * cos + turned(t) * sin")
    assert sites.is_of_callers(line, {20}) is is_of_callers


# Model.forward is called by `fit`, from two lines, and by `evaluate`; the test calls both. Busiest first.
def test_either_of_two_equal_lines_may_be_new() -> None:
    """A diff marks one of the two as new; the alignment of the texts may choose the other."""
    after = {4: ("x = x * 2", 30), 5: ("y = x * x", 3), 6: ("y = x * x", 3), 9: ("return y * 0.5", 3)}
    base, head = calling(BEFORE), calling(after)
    found = risen(base, head)
    assert found is not None
    assert found.number == 6
    sites = CallSites(base, head)
    assert [sites.is_edited(found, {number}) for number in (5, 6, 4)] == [True, True, False]


def test_the_likest_line_is_the_same_though_another_comes_first() -> None:
    base = calling(
        {
            3: ("largest = logits[k, : self.tokenizer.begin].max()", 5),
            4: ("logits[k, : self.tokenizer.begin] = -inf", 3),
        }
    )
    head = calling({3: ("logits[row, : self.tokenizer.begin] = -inf", 3)})
    assert CallSites(base, head).calls_before("f, a.py:3", base.ops[0]) == 3


def test_a_line_that_calls_another_op_in_place_of_each_does_not_call_more() -> None:
    base, line = calling({4: ("x.relu_()", 3)}), line_at("f, a.py:4", "x.relu_()")
    other = replace(base, ops=tuple(replace(row, name="aten::relu") for row in base.ops))
    assert not CallSites(base, other).calls_more(line)
    assert CallSites(base, calling({4: ("x.relu_()", 4)})).calls_more(line)
