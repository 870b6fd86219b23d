"""Which metrics block, and how strictly."""

import pytest

from pytest_opprof.compare.gates import Gates, RuleKind, parse_gate_options, parse_gates
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import COUNT, OP_METRICS, OPS_COUNT, SELF_CPU_TIME_TOTAL, TOTALS


def kind(gates: Gates, op: str | None, metric: object = COUNT) -> RuleKind | None:
    rule = gates.rule(op, metric)  # type: ignore[arg-type]  # the default above is a metric
    return None if rule is None else rule.kind


def test_totals_and_watched_ops_block_by_default() -> None:
    gates = Gates()
    assert kind(gates, None, OPS_COUNT) is RuleKind.EXACT
    assert kind(gates, "aten::item") is RuleKind.EXACT
    assert kind(gates, "aten::mul") is None


def test_times_are_advisory_by_default() -> None:
    assert kind(Gates(), "aten::item", SELF_CPU_TIME_TOTAL) is RuleKind.ADVISORY


def test_peak_memory_has_a_tolerance_of_one_percent() -> None:
    rule = Gates().rule(None, TOTALS["cpu_memory.peak"])
    assert rule is not None
    assert str(rule) == "1%"
    assert rule.allows(1, base=100)
    assert not rule.allows(2, base=100)


def test_tolerance_of_a_negative_base_is_a_share_of_its_amount() -> None:
    rule = parse_gates({"aten::*.cpu_memory": "2%"}, where="x").rule("aten::mul", OP_METRICS["cpu_memory"])
    assert rule is not None
    assert rule.allows(2, base=-100)
    assert not rule.allows(3, base=-100)


def test_last_matching_rule_counts() -> None:
    gates = parse_gates({"aten::*.count": "exact", "aten::mul.count": "off"}, where="x")
    assert kind(gates, "aten::mul") is RuleKind.OFF
    assert kind(gates, "aten::add") is RuleKind.EXACT
    assert kind(gates, "forward") is None


def test_last_of_equal_options_counts() -> None:
    gates = parse_gate_options(["aten::mul.count=exact", "aten::*.count=off", "aten::mul.count=exact"])
    assert kind(gates, "aten::mul") is RuleKind.EXACT
    assert kind(gates, "aten::add") is RuleKind.OFF


def test_stronger_rules_stand_over() -> None:
    weak = parse_gates({"ops.count": "off"}, where="x")
    strong = parse_gate_options(["ops.count=2.5%"])
    assert str(weak.under(strong).rule(None, OPS_COUNT)) == "2.5%"
    assert str(strong.under(weak).rule(None, OPS_COUNT)) == "off"


def test_op_rule_does_not_apply_to_totals() -> None:
    gates = parse_gates({"*.self_cpu_time_total": "exact"}, where="x")
    assert kind(gates, "aten::mul", SELF_CPU_TIME_TOTAL) is RuleKind.EXACT
    assert kind(gates, None, SELF_CPU_TIME_TOTAL) is RuleKind.ADVISORY


def test_pattern_like_name_is_matched_literally() -> None:
    gates = parse_gates({"[memory].count": "exact"}, where="x")
    assert kind(gates, "[memory]") is RuleKind.EXACT


def test_options_may_hold_an_equals_sign() -> None:
    gates = parse_gate_options(["a=b.count=exact"])
    assert kind(gates, "a=b") is RuleKind.EXACT


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("aten::mul.count", "--opprof-gate: 'aten::mul.count' has no rule"),
        ("aten::mul.count=strict", "--opprof-gate: aten::mul.count: 'strict' is not a rule"),
        ("aten::mul.count=x%", "--opprof-gate: aten::mul.count: 'x%' is not a percentage"),
        ("aten::mull.count=off", "unknown metric 'aten::mull.count' in --opprof-gate (did you mean"),
    ],
)
def test_misunderstood_rules_are_usage_errors(option: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_gate_options([option], known_ops={"aten::mul"})
    assert str(caught.value).startswith(sentence)
