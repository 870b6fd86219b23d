"""What the plugin keeps in pytest's stash, and what it sends between xdist's processes.

Every session loads this, so it loads no more of ours than `options`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_opprof.plugin.options import Options

if TYPE_CHECKING:
    from pytest_opprof.plugin.session import OpprofSession

OPTIONS: Final = pytest.StashKey[Options]()
SESSION: Final[pytest.StashKey[OpprofSession]] = pytest.StashKey()
ARMING: Final = pytest.StashKey[list[str]]()  # why a library could not be named
ASIDE: Final = pytest.StashKey[str]()  # why nothing is profiled, although there are marked tests
UNMEASURED: Final = pytest.StashKey[str]()  # what was asked for, and nothing could be measured for it
UNREAD: Final = pytest.StashKey[set[Path]]()  # files and folders that were not collected as far as they go
FAILED: Final = pytest.StashKey[dict[str, pytest.TestReport]]()  # by node id, where pytest heard of one

# Of what xdist carries: to a worker, how to work with the others; back, why it refused, and what it lost.
XDIST: Final = "opprof"
LOST: Final = "opprof-lost"
COLLECTED: Final = ".collected.json"  # ends the name of a file that each worker with marked tests leaves
