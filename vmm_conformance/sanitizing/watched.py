"""The environment in which Python processes watch themselves on an emulated library, from their first line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VENDOR: Final = "VMM_EMULATE"
FOLDER: Final = "VMM_EMULATE_TELL"
FORWARD: Final = "VMM_EMULATE_FORWARD"
QUIRKS: Final = "VMM_EMULATE_QUIRKS"
HISTORY: Final = "history-{}.jsonl"
"""What a process has recorded, by its number."""
REPORT: Final = "VMM_EMULATE_REPORT"
SITE: Final = Path(__file__).parent / "site"


def watched_environment(
    environment: Mapping[str, str], vendor: str, folder: Path, quirks: str = "", forward: str = ""
) -> dict[str, str]:
    """``environment``, with what makes Python processes watch themselves and tell into ``folder``.

    ``forward`` is the path of the library that calls are forwarded to, empty for the emulated one in its place.
    """
    told = {FOLDER: str(folder), QUIRKS: quirks, FORWARD: forward}
    return {**environment, **_watched(environment, vendor), **told}


def reporting_environment(environment: Mapping[str, str], vendor: str) -> dict[str, str]:
    """``environment``, with what makes a Python process say each driver call on its standard output."""
    return {**environment, **_watched(environment, vendor), REPORT: "1"}


def _watched(environment: Mapping[str, str], vendor: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(SITE), environment.get("PYTHONPATH", ""))))
    return {"PYTHONPATH": path, VENDOR: vendor}
