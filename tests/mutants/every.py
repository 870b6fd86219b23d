"""All detectors, in the order in which a loss meets them."""

from __future__ import annotations

from typing import Final

from mutants.collector import COLLECTOR
from mutants.detector import Detector
from mutants.devices import DEVICES
from mutants.documents import DOCUMENTS
from mutants.sessions import SESSIONS
from mutants.tables import TABLES
from mutants.times import TIMES
from mutants.verdicts import VERDICTS

DETECTORS: Final[tuple[Detector, ...]] = (
    *COLLECTOR,
    *DEVICES,
    *DOCUMENTS,
    *VERDICTS,
    *TIMES,
    *TABLES,
    *SESSIONS,
)
