"""Ctrl-C that is never lost.

Python raises ``KeyboardInterrupt`` wherever the program happens to be; in a callback of the garbage collector
or in a finalizer it is printed and dropped. A run of many programs meets such places often, so it remembers
that the signal came, and stops at the next program.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """A context in which SIGINT is remembered, besides what it does otherwise; ``seen`` once it came.

    Only the main thread may change what a signal does; elsewhere the context does nothing.
    """

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None
        self._active = False

    def __enter__(self) -> Interrupts:
        self._before = signal.getsignal(signal.SIGINT)
        self._active = threading.current_thread() is threading.main_thread() and callable(self._before)
        if self._active:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        if self._active:
            signal.signal(signal.SIGINT, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        self._before(number, frame)

    def check(self, *_: object) -> None:
        """Raise ``KeyboardInterrupt`` if the signal came and was lost."""
        if self.seen:
            raise KeyboardInterrupt
