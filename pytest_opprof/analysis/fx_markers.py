"""The lines of a model behind the ops of its compiled graph, by the markers that torch.compile leaves.

Generated code runs between markers: ``## path/of/the/graph.py ##`` around a graph, ``## 7 ##`` around its
node 7. A registry has the model's line for each node of each graph.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pytest_opprof.errors import UsageError

Registry = Mapping[str, Mapping[str, Any]]

_UNKNOWN: Final = "No model stack trace available"
_OPEN, _CLOSE = "## ", " ##"
# The order at equal times: a marker ends before anything else begins.
_END, _START, _WORK = range(3)


# The graph (a path) or node (a number) that is running, and its metadata.
_Scope = tuple[str | int, Mapping[str, Any] | None]


def map_recorded_events_to_aten_ops_with_stack_trace(
    traced_data: Mapping[str, Any], *, registry: Registry | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Add to the events of a trace the line of the model that they came from.

    An event that began while a node of a graph was running on its thread gets ``args["stack_trace"]`` and
    ``args["node_name"]`` of the innermost node that has any. Unlike torch's function, this one mistakes no
    other marker for a node, ends a marker only on its own thread, and returns what torch documents.

    Args:
        traced_data: A Chrome trace as JSON objects; its events are changed.
        registry: By the path of a graph, a mapping with ``node_metadata`` by the node's number. By default,
            that of torch in this process.

    Returns:
        The events that were changed, by name.

    Raises:
        UsageError: No registry is given, and this process has no torch with one.
    """
    known = _torchs_registry() if registry is None else registry
    moments = sorted(_moments(traced_data.get("traceEvents", ())), key=lambda moment: moment[:2])
    running: defaultdict[Any, list[_Scope]] = defaultdict(list)
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for _, what, marker, event in moments:
        scopes = running[event.get("tid")]
        if marker is None:
            if _tell(event, scopes):
                found[str(event.get("name", ""))].append(event)
        elif what == _START:
            _enter(marker, scopes, known)
        else:
            _leave(marker, scopes)
    return dict(found)


def _torchs_registry() -> Registry:
    module = sys.modules.get("torch.fx.traceback")
    known: Registry | None = getattr(module, "_FX_METADATA_REGISTRY", None)
    if known is None:
        raise UsageError(
            "no registry of compiled graphs: torch.fx is not imported in this process; "
            "run this where the model was compiled, or give registry="
        )
    return known


def _moments(
    events: Sequence[dict[str, Any]],
) -> Iterator[tuple[float, int, str | int | None, dict[str, Any]]]:
    """The time and kind of each start or end of a marker and start of work, its marker, and its event."""
    for event in events:
        if "ts" not in event or "dur" not in event:
            continue
        name: Any = event.get("name")
        is_op = event.get("cat") == "cpu_op" and isinstance(name, str)
        if not (is_op and name.startswith(_OPEN) and name.endswith(_CLOSE)):
            yield event["ts"], _WORK, None, event
            continue
        marker = _marker_of(name[len(_OPEN) : -len(_CLOSE)])
        # Nothing begins in a marker of no duration.
        if marker is not None and event["dur"] > 0:
            yield event["ts"], _START, marker, event
            yield event["ts"] + event["dur"], _END, marker, event


def _marker_of(content: str) -> str | int | None:
    """A graph's path, a node's number, or None for a marker of something else."""
    if content.endswith(".py"):
        return content
    try:
        return int(content)
    except ValueError:
        return None


def _enter(marker: str | int, scopes: list[_Scope], registry: Registry) -> None:
    if isinstance(marker, str):
        scopes.append((marker, registry.get(marker)))
        return
    graph = next((metadata for outer, metadata in reversed(scopes) if isinstance(outer, str)), None)
    nodes: Mapping[int, Mapping[str, Any]] = (graph or {}).get("node_metadata", {})
    if marker in nodes:
        scopes.append((marker, nodes[marker]))


def _leave(marker: str | int, scopes: list[_Scope]) -> None:
    for place in range(len(scopes) - 1, -1, -1):
        if scopes[place][0] == marker:
            del scopes[place]
            return


def _tell(event: dict[str, Any], scopes: Sequence[_Scope]) -> bool:
    nodes = (metadata for marker, metadata in reversed(scopes) if isinstance(marker, int) and metadata)
    node = next(nodes, None)
    if node is None:
        return False
    told = {"stack_trace": node.get("stack_trace", _UNKNOWN), "node_name": node.get("name", "")}
    told = {key: text for key, text in told.items() if text}
    if told:
        event.setdefault("args", {}).update(told)
    return bool(told)
