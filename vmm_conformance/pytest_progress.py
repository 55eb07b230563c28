"""Progress of the suites under pytest, with and without xdist.

A process that runs items itself prints now and then a line through pytest's own reporter. Under xdist the
workers write how far they are into a folder that the controller made, and the controller prints the sum.
After Ctrl-C it asks them there to stop, and they leave what they had found. A worker on another machine has no
such folder, and says nothing.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from vmm_conformance.reporting.progress import QUIET, SELDOM, Tally
from vmm_conformance.reporting.text import count

FOLDER: Final = "vmm_progress"
"""Key of a worker's input that names the folder."""
OFTEN: Final = 5.0
"""Seconds between lines on a terminal."""
LOOKING: Final = 1.0
"""Seconds between what the controller looks at."""
_STOP: Final = "stop"
"""A file of the folder that asks workers to stop."""
_LEFT: Final = ".left"
"""How the file ends that has what a stopped worker had found."""
_PATIENCE: Final = 60.0
"""Seconds that workers have for it after Ctrl-C; another Ctrl-C ends the wait."""
_TELLING: Final = 0.5
"""Seconds between what a worker tells."""


class Printer:
    """Prints a tally through pytest's reporter, on a terminal every 5 s, elsewhere every 30 s."""

    def __init__(self, config: pytest.Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._pause = OFTEN if sys.__stderr__ is not None and sys.__stderr__.isatty() else SELDOM
        self._next = clock() + (QUIET if self._pause == OFTEN else SELDOM)

    def show(self, text: Callable[[], str]) -> None:
        """Print what ``text`` returns, if it is time."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + self._pause
        manager = self._config.pluginmanager
        reporter, capture = manager.get_plugin("terminalreporter"), manager.get_plugin("capturemanager")
        if reporter is not None:
            with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
                reporter.ensure_newline()
                reporter.write_line(text())
                reporter.flush()


class Here:
    """Items run in this process, which has the terminal."""

    def __init__(self, config: pytest.Config, planned: int) -> None:
        self.tally = Tally(planned)
        self._printer = Printer(config)

    def programs(self, done: int, planned: int, broken: int) -> None:
        """What `run_item` calls after each program."""
        self.tally.programs(done, planned, broken)
        self._printer.show(self.tally.text)

    def finished(self, found: Iterable[str]) -> None:
        """An item is over, and has broken the invariants ``found``."""
        self.tally.finished(found)


class There:
    """Items run in an xdist worker: it tells the controller by a file of its own."""

    def __init__(self, folder: Path, worker: str, planned: int) -> None:
        self.tally = Tally(planned)
        self._file = folder / f"{worker}.json"
        self._folder = folder
        self._next = 0.0
        self._busy = False

    def programs(self, done: int, planned: int, broken: int) -> None:
        """What `run_item` calls after each program. Raises ``KeyboardInterrupt`` if the controller asks for it."""
        self.tally.programs(done, planned, broken)
        self._busy = True
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _TELLING
            self.tell()
            if (self._folder / _STOP).exists():
                raise KeyboardInterrupt

    def finished(self, found: Iterable[str]) -> None:
        """An item is over, and has broken the invariants ``found``."""
        self.tally.finished(found)
        self._busy = False
        self.tell()

    def tell(self) -> None:
        """Write the file, whole or not at all; without the folder do nothing."""
        self._write({**self.tally.as_data(), "busy": self._busy}, self._file)

    def leave(self, result: dict[str, Any]) -> None:
        """Leave the result of an item that was stopped: no test report will carry it."""
        self._write(result, self._file.with_suffix(_LEFT))

    def _write(self, data: dict[str, Any], file: Path) -> None:
        if self._folder.is_dir():
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps(data), "utf-8")
            fresh.replace(file)


def progress_of(config: pytest.Config, items: Iterable[Any]) -> Here | There | None:
    """What follows the items of this process, ``items`` being all that were collected; None for a lone far worker."""
    planned = sum(getattr(_parameter(item), "planned", 0) for item in items)
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None:
        return Here(config, planned)
    return There(Path(worker[FOLDER]), worker["workerid"], planned) if FOLDER in worker else None


def _parameter(item: Any) -> Any:
    call = getattr(item, "callspec", None)
    return call.params.get("vmm_item") if call is not None else None


class Controller:
    """Under xdist: makes the folder, and prints the sum of what the workers tell from a thread of its own."""

    def __init__(self, config: pytest.Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.folder = Path(tempfile.mkdtemp(prefix="vmm-progress-"))
        self._printer = Printer(config)
        self._over = threading.Event()
        self._tally = Tally()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """There is something to follow."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()

    def text(self) -> str:
        """All workers together."""
        told = [_read(file) for file in sorted(self.folder.glob("*.json"))]
        self._tally.add(told)
        self._tally.label = count(len(told), "worker")
        return self._tally.text()

    def _follow(self) -> None:
        while not self._over.wait(LOOKING):
            if any(self.folder.glob("*.json")):
                self._printer.show(self.text)

    def interrupt(self) -> None:
        """Ask the workers to stop, and let them make small what they had found, which xdist would not wait for."""
        (self.folder / _STOP).touch()
        until = self._clock() + _PATIENCE
        while self._clock() < until and any(_read(file).get("busy") for file in self.folder.glob("*.json")):
            time.sleep(0.05)

    def gone(self, worker: str) -> None:
        """A worker has gone, maybe amid an item: nobody is to wait for it."""
        file = self.folder / f"{worker}.json"
        if file.exists():
            file.write_text(json.dumps(_read(file) | {"busy": False}), "utf-8")

    def left(self) -> list[dict[str, Any]]:
        """The results of the items that workers had under way when they were stopped."""
        return [json.loads(file.read_text("utf-8")) for file in sorted(self.folder.glob(f"*{_LEFT}"))]

    def stop(self) -> None:
        """The run is over."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)


def _read(file: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return Tally().as_data()
    return told
