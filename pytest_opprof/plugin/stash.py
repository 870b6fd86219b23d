"""Keys of the plugin in pytest's stash, and of its messages between xdist's processes.

Every session loads this, so it loads only `options` of ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_opprof.plugin.options import Options

if TYPE_CHECKING:
    from pytest_opprof.plugin.session import OpprofSession

OPTIONS: Final = pytest.StashKey[Options]()
PARSER: Final = pytest.StashKey[pytest.Parser]()
SESSION: Final[pytest.StashKey[OpprofSession]] = pytest.StashKey()
ARMING: Final = pytest.StashKey[list[str]]()  # why a library could not be named
ASIDE: Final = pytest.StashKey[str]()  # why marked tests are not profiled
UNMEASURED: Final = pytest.StashKey[str]()  # requests that could not be measured
UNREAD: Final = pytest.StashKey[set[Path]]()  # files and folders that were not collected entirely
FAILED: Final = pytest.StashKey[dict[str, pytest.TestReport]]()  # by node id

# xdist's messages: to a worker, how to work with the others; back, why it refused, what it lost, the
# tests whose results it wrote, and its notes.
XDIST: Final = "opprof"
LOST: Final = "opprof-lost"
WRITTEN: Final = "opprof-written"
NOTES: Final = "opprof-notes"
COLLECTED: Final = ".collected.json"  # suffix of the file of each worker with marked tests
