"""Let each side of an A/B import its own code, even if PYTHONPATH or an editable install names the head's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_opprof.experiment.interleave import Side
from pytest_opprof.experiment.session import Listing, Spot


def led_apart(
    spots: Mapping[Side, Spot], listing: Listing, *, base: Path, head: Path, has_its_own: bool
) -> Mapping[Side, Spot]:
    """The sides, each with a PYTHONPATH to its own code.

    If PYTHONPATH or an editable install names a folder of the head, the base gets its counterpart. Editable
    installs do not matter if each side has its own environment.
    """
    variables = spots[Side.HEAD].environment
    given = [entry for entry in variables.get("PYTHONPATH", "").split(os.pathsep) if entry]
    of_head = [*given, *([] if has_its_own else _editable(listing, head=head))]
    if not of_head:
        return spots
    of_side = {
        Side.BASE: [str(counterpart(Path(entry), head=head, base=base)) for entry in of_head],
        Side.HEAD: of_head,
    }
    return {side: spot.told({"PYTHONPATH": os.pathsep.join(of_side[side])}) for side, spot in spots.items()}


def _editable(listing: Listing, *, head: Path) -> list[str]:
    """The head's folders that editable installs import from."""
    entries = list(listing.sys_path)
    # Entries after the standard library come from site-packages and its .pth files.
    behind = entries[entries.index(listing.stdlib) :] if listing.stdlib in entries else []
    return [
        entry
        for entry in behind
        if Path(entry).resolve().is_relative_to(head) and not listing.is_installed(Path(entry))
    ]


def counterpart(path: Path, *, head: Path, base: Path) -> Path:
    """The base's counterpart of a path in the head; any other path unchanged."""
    resolved = path.resolve()
    return base / resolved.relative_to(head) if resolved.is_relative_to(head) else path
