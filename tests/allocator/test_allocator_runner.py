"""What the harness does for a program: a caller's work, and nothing that a caller must not do."""

from __future__ import annotations

from typing import Any

import pytest
from other_allocators import Plain, Subject, Waiting

from vmm_conformance.catalogue import catalogue
from vmm_conformance.checkers.allocator import judge
from vmm_conformance.contracts import Block, Driver, DriverError, DriverOptions
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import HARNESS, SUBJECT, Event, History
from vmm_conformance.programs.allocator import (
    Allocate,
    Check,
    Close,
    Configuration,
    Deallocate,
    EnablePeer,
    Fail,
    Grow,
    Hold,
    Operation,
    Order,
    Pause,
    Resume,
    Shrink,
    Statistics,
    Synchronize,
    Trim,
    Use,
)
from vmm_conformance.programs.program import Program
from vmm_conformance.running.allocator import run
from vmm_reference.allocator import VmmAllocator
from vmm_reference.allocator_parts import PausingAllocator
from vmm_reference.subject import PAUSING, SMALL

G = 4096
REFERENCE = Subject(VmmAllocator)


def ran(*operations: Operation, subject: object = REFERENCE, **configuration: Any) -> History:
    return run(Program("allocator", Configuration(**configuration), operations), subject, HostDriver)


def notes(history: History, what: str) -> list[dict[str, Any]]:
    return [event.args[1] for event in history if event.kind == "note" and event.args[0] == what]


def calls(history: History) -> list[str]:
    return [details["name"] for details in notes(history, "call")]


def outcomes(history: History) -> list[str]:
    return [event.args[0]["status"] for event in history if event.kind == "end"]


def launches(history: History, op: int) -> list[Event]:
    return [event for event in history if event.kind == "launch" and event.op == op]


def stream_of(history: History, op: int) -> int:
    """Which of the program's streams an operation's work went to."""
    created = [event.result for event in history if event.kind == "stream_create"]
    return created.index(launches(history, op)[0].args[0])


def test_an_allocation_is_written_at_its_start_and_end_on_its_stream() -> None:
    history = ran(Allocate(100, stream=1))
    (launch,) = launches(history, 0)
    (returned,) = (details for details in notes(history, "return") if "address" in details)
    assert stream_of(history, 0) == 1
    assert [write.address - returned["address"] for write in launch.args[3]] == [0, 92]
    assert len({write.data for write in launch.args[3]}) == 2


def test_a_stream_that_is_not_ordered_behind_the_last_use_is_not_used() -> None:
    assert stream_of(ran(Allocate(G), Use(0, stream=1)), 1) == 0


@pytest.mark.parametrize("ordering", [Order(0, 1), Synchronize(0)])
def test_a_stream_that_is_ordered_is_used(ordering: Operation) -> None:
    history = ran(Allocate(G), ordering, Use(0, stream=1), Deallocate(0, stream=0))
    assert stream_of(history, 2) == 1
    assert stream_of(history, 3) == 1


def test_an_order_made_before_the_allocation_does_not_count() -> None:
    """The allocator may have queued a wait on the stream that was named at allocation."""
    assert stream_of(ran(Order(0, 1), Allocate(G), Use(0, stream=1)), 2) == 0


def test_the_harness_waits_for_nothing_the_program_does_not_wait_for() -> None:
    history = ran(Allocate(G), Use(0), Check(0), Grow(0, 2 * G), Deallocate(0), Allocate(G), Close())
    waits = {"stream_synchronize", "event_synchronize", "device_synchronize", "stream_query", "event_query"}
    closing = next(event.seq for event in history if event.kind == "device_synchronize" and event.who == HARNESS)
    assert not [e for e in history.events[:closing] if e.kind in waits and e.who == HARNESS]
    assert not [e for e in history.events[closing:] if e.who == SUBJECT], "the subject closes while work is queued"


def test_a_grown_block_is_read_behind_its_growth() -> None:
    history = ran(Allocate(G), Grow(0, 2 * G))
    (launch,) = launches(history, 1)
    assert [read.size for read in launch.args[1]] == [8, 8]
    assert [write.address - launch.args[1][0].address for write in launch.args[3]] == [2 * G - 8]


def test_a_size_that_is_no_growth_is_added() -> None:
    history = ran(Allocate(G), Grow(0, 1), Grow(0, 0), Grow(0, 3 * G))
    assert [details["size"] for details in notes(history, "call") if details["name"] == "grow"] == [
        G + 1, G + 1, 3 * G,
    ]  # fmt: skip


def test_a_block_that_the_allocator_cannot_wait_for_is_freed_before_close() -> None:
    history = ran(Allocate(G), Order(0, 1), Use(0, stream=1), Close())
    assert calls(history)[2:4] == ["deallocate", "close"]
    assert calls(ran(Allocate(G), Order(0, 1), Use(0, 1), Order(1, 0), Close()))[2] == "close"


def test_a_call_that_was_made_to_fail_is_repeated_once() -> None:
    history = ran(Fail("create", 1, 999), Allocate(G), Check(0))
    assert calls(history)[:3] == ["open", "allocate", "allocate"]
    assert outcomes(history) == ["ok", "ok", "ok"]


def test_a_call_that_is_refused_for_its_own_sake_is_not_repeated() -> None:
    history = ran(Allocate(0))
    assert calls(history) == ["open", "allocate", "close", "close"]
    assert outcomes(history) == ["refused"]


def test_an_operation_on_no_block_is_skipped() -> None:
    assert outcomes(ran(Deallocate(3), Use(0), Check(0), Grow(0, G), Close())) == ["skipped"] * 5


def test_a_closed_allocator_is_opened_again() -> None:
    assert calls(ran(Allocate(G), Close(), Allocate(G))) == ["open", "allocate", "close", "close"] * 2


def test_a_close_that_was_made_to_fail_is_repeated() -> None:
    history = ran(Allocate(G), Fail("unmap"), Close())
    assert calls(history)[2:] == ["close"] * 3
    assert outcomes(history)[-1] == "refused"
    assert judge(history).findings == []


def test_streams_of_all_devices_choose_the_device() -> None:
    history = ran(Allocate(G, stream=0), Allocate(G, stream=3), devices=2, streams=2)
    assert [details["device"] for details in notes(history, "call") if details["name"] == "allocate"] == [0, 1]


def test_growth_is_left_out_where_it_is_not_declared() -> None:
    history = ran(Allocate(G), Grow(0, 2 * G), subject=Subject(Plain, grow=False))
    assert outcomes(history) == ["ok", "skipped"]
    assert history.header["not_applicable"]["ALLOCATOR-6"] == "the subject declares grow=False"
    assert judge(history).witnesses["ALLOCATOR-6"] == 0


@pytest.mark.parametrize("operation", [Shrink(0, 1), Trim(), Pause(), Resume(), EnablePeer(), Statistics()])
def test_an_optional_part_is_left_out_where_it_is_not_declared(operation: Operation) -> None:
    history = ran(Allocate(G), operation, devices=2)
    assert outcomes(history) == ["ok", "skipped"]
    assert {"ALLOCATOR-11", "ALLOCATOR-17"} <= set(history.header["not_applicable"])


WHOLE = Subject(PausingAllocator, **PAUSING)


def test_what_is_paused_is_resumed_before_it_is_used() -> None:
    history = ran(Allocate(G), Pause(), Use(0), Pause(), Allocate(G), Pause(), Deallocate(0), Close(), subject=WHOLE)
    called = calls(history)
    assert called[2:-2] == ["pause", "resume", "pause", "resume", "allocate", "pause", "deallocate"]
    assert judge(history).findings == []


@pytest.mark.parametrize(("backup", "tokens"), [(True, 2), (False, 0)])
def test_contents_are_read_back_behind_a_pause_with_a_backup(backup: bool, tokens: int) -> None:
    history = ran(Allocate(G), Pause(0, backup), Resume(), subject=WHOLE)
    assert sum(len(launch.args[1]) for launch in launches(history, 2)) == tokens


def test_a_way_of_pausing_that_is_not_declared_is_replaced() -> None:
    history = ran(Allocate(G), Pause(0, True), subject=Subject(PausingAllocator, pause=("discard",)))
    assert [details["backup"] for details in notes(history, "call") if details["name"] == "pause"] == [False]


def test_an_allocator_that_frees_at_once_is_called_when_work_is_over() -> None:
    history = ran(Allocate(G), Use(0), Deallocate(0), subject=Subject(Plain, deallocate="immediate"))
    kinds = [event.kind for event in history if event.op == 2 and event.who == HARNESS]
    assert kinds.index("stream_synchronize") < kinds.index("note")
    assert "ALLOCATOR-5" in history.header["not_applicable"]


def held(*operations: Any, **declared: Any) -> list[str]:
    """What the notes say of holds, and the calls on the subject, in turn."""
    history = ran(*operations, subject=Subject(Waiting, **declared))
    told = [event.args for event in history if event.kind == "note"]
    return [what if what != "call" else details["name"] for what, details in told if what in ("held", "let_go", "call")]


def test_what_is_held_goes_on_before_the_caller_waits_or_closes() -> None:
    assert held(Allocate(G), Hold(), Hold(), Allocate(G), Synchronize()) == [
        "open", "allocate", "held", "allocate", "let_go", "close", "close",
    ]  # fmt: skip
    assert held(Allocate(G), Hold())[-3:] == ["let_go", "close", "close"]


def test_what_is_held_goes_on_before_a_call_that_is_declared_to_wait() -> None:
    told = held(Allocate(G), Hold(), Deallocate(0), waits=("deallocate",))
    assert told == ["open", "allocate", "held", "let_go", "deallocate", "close", "close"]


def test_nothing_is_held_where_the_caller_waits_for_work() -> None:
    assert "held" not in held(Allocate(G), Hold(), Deallocate(0), deallocate="immediate")


class Asking(Plain):
    """Waits by asking over and over."""

    def deallocate(self, block: Block, *, stream: int) -> None:
        while not self.driver.stream_query(stream):
            pass
        super().deallocate(block, stream=stream)


@pytest.mark.parametrize(("kind", "call"), [(Waiting, "stream_synchronize("), (Asking, "stream_query(")])
def test_who_waits_for_what_is_held_is_found_and_nothing_hangs(kind: type, call: str) -> None:
    (finding,) = judge(ran(Allocate(G), Hold(), Deallocate(0), subject=Subject(kind))).findings
    assert finding.invariant == "ALLOCATOR-21"
    assert finding.actual.startswith(call)


class Watchful(Plain):
    """Waits for what it was given back once memory is short: it ``asks`` how much is free, or finds it out."""

    asks = True

    def __init__(self, driver: Driver, device: int) -> None:
        super().__init__(driver, device)
        self.owed: list[tuple[int, Block]] = []

    def allocate(self, size: int, *, stream: int, space: int = 0) -> Block:
        if self.asks and self.driver.mem_info(self.device).free < size:
            self.pay()
        try:
            return super().allocate(size, stream=stream, space=space)
        except DriverError:
            self.pay()
            return super().allocate(size, stream=stream, space=space)

    def deallocate(self, block: Block, *, stream: int) -> None:
        del self.live[block.address]
        self.owed.append((stream, block))

    def pay(self) -> None:
        while self.owed:
            stream, block = self.owed[0]
            self.driver.stream_synchronize(stream)
            self.driver.free(block.address)
            del self.owed[0]

    def close(self) -> None:
        self.pay()
        super().close()


@pytest.mark.parametrize("asks", [True, False])
def test_who_waits_since_memory_is_short_is_not_blamed(asks: bool) -> None:
    subject = Subject(type("Watchful", (Watchful,), {"asks": asks}))
    history = ran(Allocate(3 * G), Hold(), Deallocate(0), Allocate(3 * G), subject=subject, capacity=4 * G)
    judged = judge(history)
    assert [finding.message for finding in judged.findings] == []
    assert judged.witnesses["ALLOCATOR-21"]


def test_who_waits_since_declared_address_space_is_short_is_not_blamed() -> None:
    grows = [Grow(0, size * G) for size in range(24, 60)]
    judged = judge(ran(Allocate(23 * G), Hold(), *grows, subject=Subject(VmmAllocator, **SMALL), capacity=64 * G))
    assert [finding.message for finding in judged.findings] == []


@pytest.mark.parametrize("waits", [True, False])
def test_where_nothing_can_be_held_back_waits_do_not_apply(waits: bool) -> None:
    all_of_them = ("allocate", "deallocate", "statistics")
    parts = {"grow": False, "statistics": True, "waits": all_of_them[: None if waits else 2]}
    reasons = ran(Allocate(G), subject=Subject(Plain, **parts)).header["not_applicable"]
    told = "the subject declares waits=allocate, deallocate, statistics, and has no other call"
    assert reasons.get("ALLOCATOR-21") == (told if waits else None)


class Unheld(HostDriver):
    """Nobody can tell whether a wait for it ends."""

    real = True


def test_on_a_device_waits_do_not_apply() -> None:
    header = run(Program("allocator", Configuration(), (Allocate(G),)), Subject(VmmAllocator), Unheld).header
    assert header["not_applicable"]["ALLOCATOR-21"] == "no work can be held back on this driver"


def test_statistics_are_in_the_history() -> None:
    history = ran(Allocate(100), Statistics(), subject=WHOLE)
    assert notes(history, "return")[2] | {} == {
        "status": "ok", "code": "", "message": "", "requested": 100, "committed": G, "reserved": G,
    }  # fmt: skip


def test_only_declared_spaces_are_used() -> None:
    history = ran(*(Allocate(G, space=n) for n in range(4)), subject=Subject(VmmAllocator, spaces=(0, 5)))
    assert [details["space"] for details in notes(history, "call") if details["name"] == "allocate"] == [0, 5, 0, 5]


def test_without_a_trace_only_what_the_catalogue_says_is_judged() -> None:
    operations = (Allocate(G), Allocate(G), Check(0), Allocate(0), Grow(0, 2 * G), Shrink(0, G), Pause(), Resume())
    history = ran(*operations, subject=Subject(PausingAllocator, traced=False, **PAUSING))
    seen = {id.partition(":")[0] for id in judge(history).witnesses} | {"ALLOCATOR-18"}  # which needs repetitions
    assert seen == {entry.id.partition(":")[0] for entry in catalogue().of("allocator") if entry.trace == "no"}


class Odd:
    """Answers with whatever it is told to."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def allocator(self, driver: Driver, device: int) -> Odd:
        return self

    def allocate(self, size: int, *, stream: int, space: int = 0) -> object:
        return self.answer

    def deallocate(self, block: Block, *, stream: int) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("answer", [None, 7, (1, 2, 3), Block(1, 2, None)])  # type: ignore[arg-type]
def test_an_answer_that_is_no_block_is_a_crash(answer: object) -> None:
    history = ran(Allocate(G), subject=Odd(answer))
    assert outcomes(history) == ["crashed"]
    (finding, *_) = judge(history).findings
    assert finding.invariant == "ALLOCATOR-9"
    assert "allocate returned" in finding.actual


@pytest.mark.parametrize("block", [Block(0, G, G), Block(-8, G, G), Block(1 << 63, 0, 0)])
def test_a_block_from_nowhere_is_a_finding(block: Block) -> None:
    history = ran(Allocate(G), Use(0), Check(0), subject=Odd(block))
    assert "ALLOCATOR-2" in {finding.invariant for finding in judge(history).findings}


def test_the_driver_is_closed_whatever_happens() -> None:
    drivers: list[HostDriver] = []

    def open_driver(options: DriverOptions) -> HostDriver:
        drivers.append(HostDriver(options))
        return drivers[-1]

    class Interrupted:
        def allocator(self, driver: Driver, device: int) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Program("allocator", Configuration(), (Allocate(G),)), Interrupted(), open_driver)
    assert drivers[0]._closed
