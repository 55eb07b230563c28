"""What the plugin keeps on pytest's own objects; light, since every pytest run of a user loads it."""

from __future__ import annotations

from typing import Any

import pytest

from vmm_conformance.invocation import Invocation

INVOCATION = pytest.StashKey[Invocation]()
RESULT = pytest.StashKey[dict[str, Any]]()
"""Where an item's result waits for its test report."""
WIDTH = pytest.StashKey[int]()
"""Columns of the terminal: of the controller's, also where a worker writes."""
