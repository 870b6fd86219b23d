"""Metrics, read by the parser of Prometheus, and by the rules of GitLab's metrics reports."""

import re
import shlex

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def by_prometheus(text: str) -> dict[tuple[str, str], float]:
    """The value of each metric and test."""
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call] # it has no types
    samples = [sample for family in families for sample in family.samples]
    assert all(set(sample.labels) == {"test"} for sample in samples)
    found = {(sample.name, sample.labels["test"]): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def by_gitlab(text: str) -> dict[str, str]:
    """The value of each name as `Gitlab::Ci::Parsers::Metrics::Generic` splits lines: a shell's words."""
    found = {}
    for line in text.splitlines():
        words = shlex.split(re.sub(r"#.*$", "", line))
        if words:
            name, value = words
            assert name not in found
            found[name] = value
    return found
