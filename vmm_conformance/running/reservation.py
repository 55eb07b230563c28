"""Runs a program of the contract ``reservation`` and records what happens.

Each call on the subject stands between two notes. ``call`` has ``name`` and what the call is about:
numbers of allocations, reservations and mappings that are never used again, and for a mapping or
remapping ``slices``: ``(reservation_offset, allocation_offset, size, allocation, required)`` each, where
allocation 0 is null and -1 something that the subject has not made. ``return`` has ``status``, ``code``
and ``message``, ``address`` for what was made, and ``views``: by number of mapping, whether it is null by
then and where it lies. ``done`` is the last note. Between them the harness's ``launch`` events are a
caller's work on mappings, waited for at once, and its ``get_access`` events ask whether addresses can be
reached. `reservation_facts.header` says what the driver is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from vmm_conformance.contracts import (
    DriverError,
    MappingDescriptor,
    RemappingDescriptor,
    status_name,
)
from vmm_conformance.history.events import HARNESS, History
from vmm_conformance.programs import reservation as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.fitted import fitted
from vmm_conformance.running.opened import OpenDriver, opened
from vmm_conformance.running.outcome import Outcome
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.reservation_calls import (
    Calls,
    Held,
    Holdings,
    Objects,
    Reserved,
    Users,
    outcome_of,
    repeated,
    shown,
    skipped,
)
from vmm_conformance.running.reservation_facts import driver_options, header
from vmm_conformance.running.reservation_requests import (
    NULL,
    Memory,
    Room,
    Slice,
    mapping_request,
    pieces_of,
    remapping_request,
)


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """Run ``program`` on ``subject`` over a fresh driver."""
    options = driver_options(program.configuration)
    history = History()
    with opened(open_driver, options) as driver:
        program = fitted(program, driver)
        history.header.update(header(program, subject, driver, options))
        running = _Run(program.configuration, subject, Recorder(driver, history))
        for number, operation in enumerate(program.operations):
            running.operation(number, operation)
        running.finish(len(program.operations))
    return history


class _Run:
    """One program being run."""

    def __init__(self, configuration: ops.Configuration, subject: Any, recorder: Recorder) -> None:
        self.subject = subject
        self.recorder = recorder
        self._call = Calls(recorder).call
        self.driver = recorder.harness
        head = recorder.history.header
        self.reach: dict[int, tuple[int, ...]] = head["reach"]
        self.minimum, self.unit = head["granularity"]
        self.spaces: tuple[int, ...] = head["spaces"]
        self.teardown = configuration.teardown
        self.users = Users(self.driver, recorder.driver.device_count)
        self.layers: dict[int, Any] = {}
        self.has = Holdings()
        self.numbers = 0
        self._handlers: dict[type, Callable[[Any], Outcome]] = {
            ops.Allocate: self._allocate,
            ops.Free: self._free,
            ops.Reserve: self._reserve,
            ops.CloseReservation: self._close,
            ops.MapOne: self._map,
            ops.MapTo: self._map,
            ops.Remap: self._remap,
            ops.Move: self._move,
            ops.Assign: self._assign,
            ops.Drop: self._drop,
            ops.TouchNull: self._touch_null,
            ops.Use: self._use,
            ops.Check: self._use,
            ops.Probe: self._probe,
            ops.Fail: self._fail,
        }

    def operation(self, number: int, operation: ops.Operation) -> None:
        """Run one operation of the program."""
        self.recorder.op = number
        self.recorder.event(HARNESS, "begin", (operation,))
        try:
            outcome = self._handlers[type(operation)](operation)
        except DriverError as error:
            outcome = outcome_of("refused", status_name(error.status), f"the caller's own call: {error}")
        self.recorder.event(HARNESS, "end", (outcome,))

    def finish(self, number: int) -> None:
        """Read all that is mapped, give everything up in the configured order, and that twice."""
        self.recorder.op = number
        self.recorder.faults.clear()
        try:
            for held in self.has.held:
                self.users.work(held, held.reserved.device)
            if self.teardown is ops.Teardown.MEMORY:
                self._free_all()
            if self.teardown is ops.Teardown.RESERVATIONS:
                self._close_all()
            for held in tuple(self.has.held):
                self._drop_one(held)
            self._close_all()
            self._free_all()
            for memory in self.has.memories:
                self._call("free", memory.object.release, allocation=memory.id)
        except DriverError as error:
            self.recorder.note("the caller's own call failed", error=str(error))
        self.recorder.note("done")

    def _free_all(self) -> None:
        for memory in self.has.memories:
            if memory.held:
                self._free_one(memory)

    def _close_all(self) -> None:
        for reserved in tuple(self.has.reserved):
            self._close_one(reserved)
        for reserved in self.has.closed:
            self._call("close", reserved.object.close, reservation=reserved.id)

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _layer(self, device: int) -> Any:
        if device not in self.layers:
            self.layers[device] = self.subject.reservation(self.recorder.subject, device)
        return self.layers[device]

    # -- memory and addresses

    def _allocate(self, operation: ops.Allocate) -> Outcome:
        device = operation.device % len(self.reach)
        space = self.spaces[operation.space % len(self.spaces)]
        number, size = self._number(), operation.size

        def call() -> tuple[Outcome, Any]:
            about: dict[str, Any] = {"allocation": number, "device": device, "size": size, "space": space}
            return self._call("allocate", lambda: self._layer(device).allocate(size, space), **about)

        outcome, made = repeated(call)
        if outcome["status"] == "ok":
            self.has.memories.append(Memory(number, device, made, outcome["seen"].size))
        return shown(outcome)

    def _free(self, operation: ops.Free) -> Outcome:
        live = [memory for memory in self.has.memories if memory.held]
        return self._free_one(live[operation.allocation % len(live)]) if live else skipped("nothing is allocated")

    def _free_one(self, memory: Memory) -> Outcome:
        outcome, _ = self._call("free", memory.object.release, allocation=memory.id)
        memory.held = outcome["status"] != "ok"
        return shown(outcome)

    def _reserve(self, operation: ops.Reserve) -> Outcome:
        device = operation.device % len(self.reach)
        number, size, alignment = self._number(), operation.size, operation.alignment

        def call() -> tuple[Outcome, Any]:
            about: dict[str, Any] = {"reservation": number, "device": device, "size": size, "alignment": alignment}
            return self._call("reserve", lambda: self._layer(device).reserve(size, alignment), **about)

        outcome, made = repeated(call)
        if outcome["status"] == "ok":
            reserved = Reserved(number, device, made, outcome["seen"])
            self.has.reserved.append(reserved)
            self.users.reach(reserved, 0)
        return shown(outcome)

    def _close(self, operation: ops.CloseReservation) -> Outcome:
        if not self.has.reserved:
            return skipped("nothing is reserved")
        reserved = self.has.reserved[operation.reservation % len(self.has.reserved)]
        outcome = self._close_one(reserved)
        self._call("close", reserved.object.close, reservation=reserved.id)
        return outcome

    def _close_one(self, reserved: Reserved) -> Outcome:
        outcome, _ = self._call("close", reserved.object.close, reservation=reserved.id)
        self.has.reserved.remove(reserved)
        self.has.closed.append(reserved)
        for held in [held for held in self.has.held if held.reserved is reserved]:
            self.has.became_null(held)
        return shown(outcome)

    # -- mappings

    def _map(self, operation: ops.MapOne | ops.MapTo) -> Outcome:
        wanted = self.has.closed[-1:] if operation.odd is ops.Odd.CLOSED and self.has.closed else self.has.usable()
        if not wanted:
            return skipped("nothing is reserved")
        reserved = wanted[operation.reservation % len(wanted)]
        slices = mapping_request(operation, self._room(reserved), reserved.size, self.has.taken(reserved))
        if slices is None:
            return skipped("nothing is allocated on this device")
        if isinstance(operation, ops.MapOne) and len(slices) == 1:
            return self._map_slices("map_one", reserved, slices)
        return self._map_slices("map_to", reserved, slices)

    def _room(self, reserved: Reserved) -> Room:
        capabilities = self.recorder.driver.capabilities
        return Room(self.has.memories, reserved.device, self.minimum, self.unit, capabilities)

    def _map_slices(self, name: str, reserved: Reserved, slices: list[Slice]) -> Outcome:
        """Map, repeat what was struck, then use what was mapped."""
        with Objects(self.driver, self.has.memories, slices) as objects:
            made_from = [MappingDescriptor(s.offset, s.skip, s.size, o) for s, o in zip(slices, objects, strict=True)]
            number = self._number()

            def call() -> tuple[Outcome, Any]:
                if name == "map_one":
                    action = partial(reserved.object.map_one, *made_from[0])
                else:
                    action = partial(reserved.object.map_to, made_from)
                about: dict[str, Any] = {"reservation": reserved.id, "made": number}
                return self._call(name, action, slices=tuple(map(tuple, slices)), **about)

            outcome, made = repeated(call)
        pieces = pieces_of(slices, (), self.has.memories)
        if outcome["status"] == "ok" and pieces and reserved in self.has.reserved:
            held = Held(number, made, reserved, pieces)
            self.has.held.append(held)
            self.users.work(held, reserved.device, write=True)
        elif slices and reserved in self.has.reserved:
            self.users.reach(reserved, slices[0].offset)
        return shown(outcome)

    def _remap(self, operation: ops.Remap) -> Outcome:
        held = self.has.mapping(operation.mapping)
        if held is None:
            return skipped("nothing is mapped")
        slices = remapping_request(operation, self._room(held.reserved), held.pieces)
        outcome, number, made = self._remap_object(held.id, held.object, slices)
        pieces = pieces_of(slices, held.pieces, self.has.memories)
        if outcome["status"] == "ok" and pieces:
            self.has.replace(held, Held(number, made, held.reserved, pieces))
            self.users.work(self.has.held[-1], held.reserved.device, write=True)
        elif outcome["null"].get(held.id):
            self.has.became_null(held)
            self._rebuild(held, slices, bool(outcome["struck"]))
        else:
            self.users.work(held, held.reserved.device)
        return shown(outcome)

    def _remap_object(self, number: int, mapping: Any, slices: list[Slice]) -> tuple[Outcome, int, Any]:
        made_number = self._number()
        with Objects(self.driver, self.has.memories, slices) as objects:
            described = [
                RemappingDescriptor(s.offset, s.skip, s.size, o, s.required)
                for s, o in zip(slices, objects, strict=True)
            ]
            about: dict[str, Any] = {"mapping": number, "made": made_number, "slices": tuple(map(tuple, slices))}
            outcome, made = self._call("remap", lambda: mapping.remap(described), [(number, mapping)], **about)
        return outcome, made_number, made

    def _rebuild(self, held: Held, slices: list[Slice], struck: bool) -> None:
        """After a remap that failed: the same range is mapped again, if all memory for it is still held."""
        if struck:
            wanted = pieces_of(slices, held.pieces, self.has.memories)
            if all(piece.memory.held for piece in wanted):
                again = [Slice(p.offset, p.skip, p.size, p.memory.id) for p in wanted]
                self._map_slices("map_to", held.reserved, again)
                return
        self.users.reach(held.reserved, held.pieces[0].offset)

    def _move(self, operation: ops.Move) -> Outcome:
        held = self.has.mapping(operation.mapping)
        if held is None:
            return skipped("nothing is mapped")
        number = self._number()
        outcome, made = self._call("move", held.object.move, [(held.id, held.object)], mapping=held.id, made=number)
        if outcome["status"] == "ok":
            self.has.replace(held, Held(number, made, held.reserved, held.pieces))
            self._call("drop", held.object.release, [(held.id, held.object)], mapping=held.id)
            self.users.work(self.has.held[-1], held.reserved.device)
        return shown(outcome)

    def _assign(self, operation: ops.Assign) -> Outcome:
        owners: list[tuple[int, Any, Held | None]] = [(held.id, held.object, held) for held in self.has.held]
        owners += [(*self.has.null, None)] if self.has.null else []
        if not owners:
            return skipped("there is no mapping")
        number, target, old = owners[operation.target % len(owners)]
        other, source, new = owners[operation.source % len(owners)]
        outcome, _ = self._call(
            "assign", lambda: target.assign(source), [(number, target), (other, source)], target=number, source=other
        )
        if other != number and outcome["status"] == "ok":
            if old:
                self.has.held.remove(old)
            if new:
                self.has.became_null(new)
                self.has.held.append(Held(number, target, new.reserved, new.pieces))
                self.users.work(self.has.held[-1], new.reserved.device)
            elif old:
                self.has.null = number, target
            if old:
                self.users.reach(old.reserved, old.pieces[0].offset)
        return shown(outcome)

    def _drop(self, operation: ops.Drop) -> Outcome:
        held = self.has.mapping(operation.mapping)
        return self._drop_one(held, scoped=operation.scoped) if held else skipped("nothing is mapped")

    def _drop_one(self, held: Held, *, scoped: bool = False) -> Outcome:
        def leave() -> None:
            with held.object:
                pass

        action = leave if scoped else held.object.release
        outcome, _ = self._call("drop", action, [(held.id, held.object)], mapping=held.id)
        self.has.became_null(held)
        self.users.reach(held.reserved, held.pieces[0].offset)
        return shown(outcome)

    def _touch_null(self, operation: ops.TouchNull) -> Outcome:
        if self.has.null is None:
            return skipped("no mapping is null")
        number, mapping = self.has.null
        if operation.how is ops.Touch.REMAP:
            memory = next((memory for memory in self.has.memories if memory.held), None)
            slices = [Slice(0, 0, self.unit, memory.id if memory else NULL)]
            return shown(self._remap_object(number, mapping, slices)[0])
        if operation.how is ops.Touch.MOVE:
            look = [(number, mapping)]
            return shown(self._call("move", mapping.move, look, mapping=number, made=self._number())[0])
        if operation.how is ops.Touch.DROP:
            return shown(self._call("drop", mapping.release, [(number, mapping)], mapping=number)[0])
        return shown(self._call("address", lambda: mapping.address, mapping=number)[0])

    # -- the caller's work

    def _use(self, operation: ops.Use | ops.Check) -> Outcome:
        held = self.has.mapping(operation.mapping)
        if held is None:
            return skipped("nothing is mapped")
        users = self.reach[held.reserved.device]
        self.users.work(held, users[operation.device % len(users)], write=isinstance(operation, ops.Use))
        return outcome_of("ok", "", "")

    def _probe(self, operation: ops.Probe) -> Outcome:
        if not self.has.reserved:
            return skipped("nothing is reserved")
        reserved = self.has.reserved[operation.reservation % len(self.has.reserved)]
        for device in self.reach[reserved.device]:
            self.users.ask(reserved.base + operation.granule * self.unit % reserved.size, device)
        return outcome_of("ok", "", "")

    def _fail(self, operation: ops.Fail) -> Outcome:
        self.recorder.faults.inject(operation.kind, operation.k, operation.status)
        return outcome_of("ok", "", "")
