"""Objects in a subject's process, as the harness sees them: their methods become requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from threading import get_ident
from typing import Any, Final

from vmm_conformance.contracts import Buffer, Range, Settings
from vmm_conformance.running.proc.messages import whole
from vmm_conformance.running.proc.spoken import SPOKEN, Record, methods

Ask = Callable[..., Any]
"""``ask(do, callbacks, **arguments)``: what the subject returns; what it refuses with is raised.

``callbacks`` are calls, beside those of the driver, that it may make meanwhile.
"""


class Remote:
    """One object of ``contract``, whose methods are attributes."""

    def __init__(self, ask: Ask, contract: str) -> None:
        self._ask = ask
        self._contract = contract

    def open(self, devices: int, given: Any) -> None:
        """Make the object; ``given`` is what its factory takes, ``devices`` how many the driver has."""
        first, *others = SPOKEN[self._contract].opens
        self.say("open", **{first: given, **dict.fromkeys(others, devices)})

    def __getattr__(self, name: str) -> Any:
        """A method, made when it is first asked for."""
        signature = methods(SPOKEN[self._contract].protocol).get(name)
        if signature is None:
            raise AttributeError(f"an object of the contract {self._contract} has no {name!r}")

        def call(*given: Any, **named: Any) -> Any:
            bound = signature.bind(*given, **named)
            bound.apply_defaults()
            return self.say(name, **bound.arguments)

        self.__dict__[name] = call
        return call

    def say(self, do: str, callbacks: Mapping[str, Callable[..., object]] | None = None, **arguments: Any) -> Any:
        """Make the request ``do``; its answer, as a record if it has one."""
        answer = self._ask(do, callbacks or {}, **{name: plain(value) for name, value in arguments.items()})
        kind = SPOKEN[self._contract].records.get(do)
        return answer if kind is None else as_record(kind, answer)


class RemoteVmmAllocator(Remote):
    """See `contracts.VmmAllocator`. Requests name the host thread they come from: contexts belong to it."""

    def __init__(self, ask: Ask, contract: str) -> None:
        super().__init__(ask, contract)
        self._own = get_ident()

    def say(self, do: str, callbacks: Mapping[str, Callable[..., object]] | None = None, **arguments: Any) -> Any:
        """See `Remote.say`."""
        thread = {} if do == "open" else {"thread": int(get_ident() != self._own)}
        return super().say(do, callbacks, **thread, **arguments)

    def create_reservation(self, ordinal: int, size: int) -> Any:
        """A reservation, or whatever else was returned, which whoever asked takes for a crash."""
        made = self.say("create_reservation", ordinal=ordinal, size=size)
        if not isinstance(made, dict) or set(made) != {"reservation", *Range._fields}:
            return made
        place = as_record(Range, {name: made[name] for name in Range._fields})
        return RemoteReservation(self, made["reservation"], place)

    @contextmanager
    def device_tag(self, multi_device: bool) -> Iterator[None]:
        """A context, told of when it is entered and when it is left."""
        self.say("device_tag", multi_device=multi_device)
        yield
        self.say("device_tag_end")


class RemoteReservation:
    """A reservation, by the ``number`` that it has in the subject's process. See `contracts.AddressReservation`."""

    def __init__(self, allocator: Remote, number: Any, range: Any) -> None:
        self._allocator = allocator
        self.number = number
        self.range = range

    def release(self) -> None:
        """Give the addresses back."""
        self._allocator.say("release", reservation=self)


class RemoteExecutor(Remote):
    """See `contracts.StepExecutor`. ``execute`` is a call that the subject makes, as it makes driver calls."""

    def step(self, buffers: Sequence[Buffer], *, device: int, stream: int, execute: Callable[..., None]) -> None:
        """Run one step."""
        self.say("step", {"execute": execute}, buffers=buffers, device=device, stream=stream)


REMOTES: Final[Mapping[str, type[Remote]]] = {
    "allocator": Remote, "flags": Remote, "skip-remap": RemoteExecutor, "vmm-allocator": RemoteVmmAllocator,
}  # fmt: skip
"""What stands for an object of each contract."""


def plain(value: Any) -> Any:
    """``value`` as JSON has it: records and dataclasses by their fields, reservations by their number."""
    if isinstance(value, RemoteReservation):
        return value.number
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def as_record(kind: Record, value: Any) -> Any:
    """``value`` as ``kind``, or as it is, which whoever asked for one takes for a crash."""
    if issubclass(kind, Settings):
        return _as_settings(value)
    if not isinstance(value, dict) or value.keys() != set(kind._fields):
        return value
    try:
        return kind(*(whole(value[name]) for name in kind._fields))
    except ValueError:
        return value


def _as_settings(value: Any) -> Any:
    if not isinstance(value, dict) or value.keys() != {field.name for field in fields(Settings)}:
        return value
    skips, threshold, warnings = value["skip_remap"], value["copy_threshold"], value["warnings"]
    good = type(skips) is bool and (type(threshold) is int or threshold == "auto") and isinstance(warnings, list)
    return Settings(skips, threshold, tuple(map(str, warnings))) if good else value
