"""What the fixtures give to a project's own tests: recorded drivers, programs, and their findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.judge import Finding, Judge
from vmm_conformance.contracts import CONTRACTS, Allocator, Block, Driver, DriverOptions
from vmm_conformance.history.events import History
from vmm_conformance.programs.files import load
from vmm_conformance.programs.program import Program
from vmm_conformance.running.driver import note_granularity
from vmm_conformance.running.outcome import Outcome, attempt
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.subjects import open_driver, resolve_subject


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the marker ``vmm`` says: whose checkers judge, which invariants count, what driver is wanted.

    An invariant is meant by its id or the beginning of it; with none, all are.
    """

    contract: str = "allocator"
    invariants: tuple[str, ...] = ()
    options: DriverOptions = field(default_factory=DriverOptions)

    @classmethod
    def of(cls, node: pytest.Item) -> Expectation:
        """The expectation of a test. Raises `pytest.UsageError` for a marker that means nothing."""
        marker = node.get_closest_marker("vmm")
        if marker is None:
            return cls()
        unknown = sorted(set(marker.kwargs) - {"contract", "invariants", "options"}) or marker.args
        if unknown:
            raise pytest.UsageError(f"marker vmm takes contract=, invariants= and options=, not {unknown}")
        given = {key: value for key, value in marker.kwargs.items() if value is not None}
        contract, invariants = given.get("contract", "allocator"), given.get("invariants", ())
        made = cls(
            contract,
            (invariants,) if isinstance(invariants, str) else tuple(invariants),
            given.get("options", DriverOptions()),
        )
        made._check()
        return made

    def _check(self) -> None:
        if self.contract not in CONTRACTS:
            raise pytest.UsageError(f"marker vmm: unknown contract {self.contract!r}; accepted: {', '.join(CONTRACTS)}")
        for prefix in self.invariants:
            if not catalogue().matching(prefix):
                raise pytest.UsageError(f"marker vmm: no invariant begins with {prefix!r}")

    def verdict(self, history: History, judge: Judge) -> Verdict:
        """What counts of a judgement."""
        ids = {entry.id for prefix in self.invariants or ("",) for entry in catalogue().matching(prefix)}
        return Verdict(
            history,
            tuple(finding for finding in judge.findings if finding.invariant in ids),
            Counter({id: count for id, count in judge.witnesses.items() if id in ids}),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checkers say of one history: findings, and how often each invariant was put to the test."""

    history: History
    findings: tuple[Finding, ...]
    witnesses: Counter[str]

    def check(self) -> None:
        """Raise ``AssertionError`` that lists the findings, if there are any."""
        if self.findings:
            raise AssertionError("\n".join(map(_line, self.findings)))


def _line(finding: Finding) -> str:
    text = f"{finding.invariant}: {finding.message}"
    text += f"; expected {finding.expected}" if finding.expected else ""
    return text + (f", found {finding.actual}" if finding.actual else "")


def open_host(options: DriverOptions) -> Driver:
    """A fresh host driver."""
    return open_driver("host")(options)


class Recorded:
    """A recorded driver. ``driver`` is for the code under test, ``caller`` for the test's own calls.

    Work that the test submits goes through ``caller``: a checker blames the code under test alone.
    """

    def __init__(self, driver: Driver, expectation: Expectation) -> None:
        if expectation.contract not in ("allocator", "driver"):
            raise pytest.UsageError(
                f"vmm_recorded judges the contracts allocator and driver; run programs for"
                f" {expectation.contract} with vmm_run"
            )
        self._expectation = expectation
        self._raw = driver
        self.history = History(_header(driver, expectation))
        self._recorder = Recorder(driver, self.history)
        self.driver: Driver = self._recorder.subject
        self.caller: Driver = self._recorder.harness
        self._blocks = 0
        if expectation.contract == "driver":  # its checkers look for these before anything else
            for device in range(driver.device_count):
                for space in sorted(expectation.options.spaces):
                    note_granularity(self._recorder, device, space)

    def allocator(self, subject: Any, device: int = 0) -> RecordedAllocator:
        """An allocator of ``subject`` on the recorded driver, whose calls are recorded too."""
        return RecordedAllocator(self._recorder, subject, device, self._number)

    def _number(self) -> int:
        self._blocks += 1
        return self._blocks

    def finish(self) -> Verdict:
        """The code under test is done: what it still holds counts as left behind. The verdict on that."""
        for name in ("open", "close"):  # what is left is judged when an allocator has closed
            self._recorder.note("call", name=name, device=0, block=0)
            self._recorder.note("return", status="ok", code="", message="")
        return self.verdict()

    def verdict(self) -> Verdict:
        """Let all queued work run, and judge everything up to now."""
        for device in range(self._raw.device_count):
            self._raw.device_synchronize(device)
        judge = plug(self._expectation.contract).judge(self.history)
        return self._expectation.verdict(self.history, judge)

    def findings(self) -> tuple[Finding, ...]:
        """The findings of `verdict`."""
        return self.verdict().findings

    def check(self) -> None:
        """Raise ``AssertionError`` that lists the findings, if there are any."""
        self.verdict().check()

    def stop(self) -> None:
        """Record no more."""
        self._raw.listen(None)


def _header(driver: Driver, expectation: Expectation) -> dict[str, Any]:
    """What the checkers of the contracts ``allocator`` and ``driver`` must know."""
    spaces = tuple(expectation.options.spaces)
    return {
        "contract": expectation.contract,
        "options": expectation.options,
        "granularity": {space: driver.granularity(0, space).recommended for space in spaces},
        "alignment": {space: driver.space_alignment(0, space) for space in spaces},
        "capacity": {device: driver.mem_info(device).free for device in range(driver.device_count)},
        "unmap_waits": driver.capabilities.unmap_waits,
        "capabilities": driver.capabilities,
        "devices": driver.device_count,
        "peers": tuple(
            (a, b)
            for a in range(driver.device_count)
            for b in range(driver.device_count)
            if a != b and driver.can_access_peer(a, b)
        ),
        "driver": driver.name,
        "real": driver.real,
        "traced": True,
    }


class RecordedAllocator:
    """An allocator whose calls are in the history: the contract ``allocator``, call for call."""

    def __init__(self, recorder: Recorder, subject: Any, device: int, number: Callable[[], int]) -> None:
        self._recorder = recorder
        self._device = device
        self._number = number
        self._numbers: dict[Block, int] = {}
        self._inner: Allocator = self._call("open", lambda: subject.allocator(recorder.subject, device))

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        """See `vmm_conformance.contracts.Allocator`."""
        number = self._number()
        asked = {"size": size, "stream": stream, "space": space}
        block: Block = self._call(
            "allocate", lambda: self._inner.allocate(size, stream=stream, space=space), number, **asked
        )
        self._numbers[block] = number
        return block

    def deallocate(self, block: Block, *, stream: int) -> None:
        """See `vmm_conformance.contracts.Allocator`."""
        number = self._numbers.get(block, 0)
        self._call("deallocate", lambda: self._inner.deallocate(block, stream=stream), number, stream=stream)
        self._numbers.pop(block, None)

    def grow(self, block: Block, size: int, *, stream: int) -> Block:
        """See `vmm_conformance.contracts.Allocator`."""
        number = self._numbers.get(block, 0)
        asked = {"size": size, "stream": stream}
        grown: Block = self._call("grow", lambda: self._inner.grow(block, size, stream=stream), number, **asked)
        self._numbers.pop(block, None)
        self._numbers[grown] = number
        return grown

    def close(self) -> None:
        """See `vmm_conformance.contracts.Allocator`."""
        self._call("close", lambda: self._inner.close())

    def _call(self, name: str, action: Callable[[], Any], block: int = 0, **arguments: Any) -> Any:
        """One call between the notes ``call`` and ``return``; what it raises comes through."""
        answer: list[Any] = []
        raised: list[Exception] = []

        def kept() -> None:
            try:
                answer.append(action())
            except Exception as error:
                raised.append(error)
                raise

        self._recorder.note("call", name=name, device=self._device, block=block, **arguments)
        outcome: Outcome = attempt(kept)
        made = {"block": block, **answer[0]._asdict()} if answer and isinstance(answer[0], Block) else {}
        self._recorder.note("return", **outcome, **made)
        if raised:
            raise raised[0]
        return answer[0]


class Run:
    """``run(program, subject)``: run a program, or the file or JSON text of one, and get the verdict."""

    def __init__(self, expectation: Expectation) -> None:
        self._expectation = expectation

    def __call__(self, program: Program | Path | str, subject: object, *, driver: str = "host") -> Verdict:
        """The verdict on ``program`` on ``subject``, an object or a spec, over a fresh ``driver``.

        Raises `vmm_conformance.programs.codec.ProgramError` if the program cannot be read.
        """
        made = program if isinstance(program, Program) else load(program)
        found = resolve_subject(subject) if isinstance(subject, str) else subject
        judged = bench_for(made.contract, found, driver).run(made)
        return self._expectation.verdict(judged.history, judged.judge)
