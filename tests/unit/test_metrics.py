"""The metrics, and how users write them."""

import pytest

from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import (
    ANSWERS,
    COUNT,
    FINGERPRINT_FIELDS,
    OP_METRICS,
    OPS_COUNT,
    PRESETS,
    TOTALS,
    WATCHED_OPS,
    Family,
    Scope,
    Source,
    parse_path,
)

KNOWN = {"aten::item", "aten::mul", "aten::copy_", "prim::device"}


def test_op_path_is_cut_at_last_metric() -> None:
    path = parse_path("Optimizer.step#SGD.step.count", where="x")
    assert (path.op, path.metric) == ("Optimizer.step#SGD.step", COUNT)


def test_total_takes_precedence_over_an_op() -> None:
    path = parse_path("ops.count", where="x")
    assert (path.op, path.metric) == (None, OPS_COUNT)


@pytest.mark.parametrize(
    "text",
    [
        "aten::mul.count",
        "aten::*.cpu_time_total",
        "forward.count",
        "autograd::engine::evaluate_function: AddmmBackward0.count",
        "mylib::op.count",
        "[o]ps.count",
    ],
)
def test_known_and_foreign_names_pass(text: str) -> None:
    assert str(parse_path(text, where="x", known_ops=KNOWN)) == text


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("aten::itme.count", "aten::item.count"),
        ("aten::item.cuont", "aten::item.count"),
        ("prim::devcie.count", "prim::device.count"),
        ("ops.coutn", "ops.count"),
        ("op.count", "ops.count"),
        ("sync.count", "syncs.count"),
        ("aten::mul.self_cpu_time", "aten::mul.self_cpu_time_total"),
    ],
)
def test_typo_gets_nearest_metric(text: str, suggestion: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_path(text, where="limits of test_x", known_ops=KNOWN)
    message = str(caught.value)
    assert message.startswith(f"unknown metric {text!r} in limits of test_x (did you mean {suggestion!r}")


@pytest.mark.parametrize("text", ["", "nonsense", "a.b.c"])
def test_unknown_path_lists_the_metrics(text: str) -> None:
    with pytest.raises(UsageError, match=r"there are: ops\.count, .*<op>\.count"):
        parse_path(text, where="x")


def test_every_metric_names_known_fields() -> None:
    for metric in (*TOTALS.values(), *OP_METRICS.values()):
        assert metric.depends_on <= set(FINGERPRINT_FIELDS)
        assert metric.source is None or metric.source in ANSWERS


def test_every_preset_is_made_of_totals() -> None:
    for limits in PRESETS.values():
        assert all(parse_path(path, where="x").metric.scope is Scope.TOTAL for path in limits)


def test_times_are_never_watched() -> None:
    assert not any(metric.watched for metric in TOTALS.values() if metric.family is Family.TIME)


def test_every_watched_op_has_a_reason() -> None:
    assert all(WATCHED_OPS.values())
    assert {"aten::item", "aten::copy_", "aten::clone", "aten::contiguous", "aten::nonzero"} <= set(
        WATCHED_OPS
    )


def test_itt_source_counts_ops() -> None:
    assert OPS_COUNT.answers([Source.OPS_ITT])
    assert not OPS_COUNT.answers([Source.RANGES])
