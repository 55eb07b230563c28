"""Stretches in which host threads take turns, as programs write them: see `running.scheduler`."""

from __future__ import annotations

from typing import Final

AT_WAIT: Final = -1
"""As a turn: up to the point where the thread is about to wait for the device."""
