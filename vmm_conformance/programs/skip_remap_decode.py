"""Turns any bytes into a long program of the contract ``skip-remap``.

A program takes a swarm subset of the kinds of operations; sizes come from the boundaries first; what
makes every further step be refused (growth, a lost buffer) is repaired soon after, or a third of the
steps would test nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vmm_conformance.contracts import UpdateMode, Use
from vmm_conformance.programs import skip_remap as ops
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.program import Program

LIMIT: Final = 32
"""Operations in a program at most."""

FAILING: Final = (
    "map", "set_access", "unmap", "alloc", "reserve", "event_record", "copy", "event_synchronize",
    "event_create", "stream_wait_event", "free", "address_free",
)  # fmt: skip
FAILING_FIRST: Final = ("reserve", "map", "reserve", "set_access", "event_create", "copy", "alloc")
"""What a first step may fail at."""
STATUSES: Final = (2, 1, 999)
KINDS: Final = (
    "move", "move", "swap", "bind", "recreate", "shrink", "vacate", "grow", "disturb", "refill", "fail",
    "progress", "order", "synchronize", "close",
)  # fmt: skip
SPACES: Final = (0, 0, 0, 1, 5)
THRESHOLDS: Final = (0, 64, 256, 1024, 4096)


def decode(data: bytes, pins: Mapping[str, Any] = {}) -> Program:
    """The program that ``data`` stands for.

    ``pins`` fixes parts of the configuration: ``devices``, ``streams``, ``capture``, ``eager``,
    ``compare``, ``rounds``, ``partial_map``, and for each executable ``mode``, ``platform``, ``vmm``,
    ``skip_remap``, ``copy_threshold``; ``executables`` their number; ``probe`` allows probes.
    """
    choices = Choices(data)
    configuration = _configuration(choices, pins)
    return Program("skip-remap", configuration, _Operations(choices, configuration, pins).draw())


def _configuration(choices: Choices, pins: Mapping[str, Any]) -> ops.Configuration:
    def drawn(name: str, value: Any) -> Any:
        return pins.get(name, value)

    recommended = choices.pick((4096, 4096, 8192))
    count = drawn("executables", choices.pick((1, 1, 1, 2)))
    partial = drawn("partial_map", not choices.chance(32))
    return ops.Configuration(
        executables=tuple(_executable(choices, recommended, pins, partial) for _ in range(count)),
        devices=drawn("devices", choices.pick((1, 1, 1, 2))),
        streams=drawn("streams", choices.pick((1, 1, 2, 3))),
        recommended=recommended,
        capture=drawn("capture", choices.chance(128)),
        eager=drawn("eager", choices.chance(48)),
        compare=drawn("compare", False),
        unmap_spans=not choices.chance(64),
        access_spans=not choices.chance(64),
        partial_map=partial,
        rounds=drawn("rounds", 1),
    )


def _executable(choices: Choices, granule: int, pins: Mapping[str, Any], partial: bool) -> ops.ExecutablePlan:
    threshold = pins.get("copy_threshold", choices.pick(THRESHOLDS))
    slots = tuple(_slot(choices, granule, threshold, partial) for _ in range(2 + choices.below(5)))
    modes = (UpdateMode.NEVER_UPDATE,) * 4 + (UpdateMode.CAPTURE_CMD_NEVER_UPDATE,) * 2 + (UpdateMode.ALWAYS_UPDATE,)
    return ops.ExecutablePlan(
        slots=slots,
        commands=_commands(choices, len(slots)),
        mode=pins.get("mode", choices.pick(modes)),
        platform=pins.get("platform", choices.pick(("ROCM",) * 6 + ("CUDA", "rocm"))),
        vmm=pins.get("vmm", not choices.chance(16)),
        skip_remap=pins.get("skip_remap", not choices.chance(40)),
        copy_threshold=threshold,
    )


def _slot(choices: Choices, granule: int, threshold: int, partial: bool) -> ops.SlotPlan:
    # A source wider than its slot is refused for good where handles are mapped whole.
    wide = choices.chance(24) and (partial or choices.chance(8))
    return ops.SlotPlan(
        size=_size(choices, granule, threshold),
        space=choices.pick(SPACES),
        use=choices.pick((Use.READ_WRITE, Use.READ_WRITE, Use.READ, Use.WRITE)),
        constant=choices.chance(16),
        read_only=choices.chance(16),
        extra=1 if wide else 0,
    )


def _size(choices: Choices, granule: int, threshold: int) -> int:
    """A size in bytes, boundaries first; zero is rare."""
    if choices.chance(10):
        return 0
    around = (threshold or 256, granule)[choices.below(2)]
    return max(1, choices.pick((around, around + 1, around - 1, granule * 2, 1, 64, granule + 1, around // 2)))


def _commands(choices: Choices, slots: int) -> tuple[ops.CommandPlan, ...]:
    everything = tuple(range(slots))
    commands = []
    for _ in range(1 + choices.below(3)):
        named = choices.subset(everything, keep=180)
        if choices.chance(2):
            named = (*named, slots + choices.below(3))
        commands.append(ops.CommandPlan(named, traced=not choices.chance(64)))
    return tuple(commands)


class _Operations:
    """Draws operations until the bytes run out."""

    def __init__(self, choices: Choices, configuration: ops.Configuration, pins: Mapping[str, Any]) -> None:
        self._choices = choices
        self._configuration = configuration
        kinds = [kind for kind in KINDS if kind != "close" or choices.chance(64)]
        if configuration.compare:
            kinds = [kind for kind in kinds if kind not in ("fail", "close", "disturb", "grow")]
        if configuration.rounds > 1:
            kinds = [kind for kind in kinds if kind != "fail"]
        self._kinds = choices.subset(kinds)
        self._probes = pins.get("probe", choices.chance(40))
        self._out: list[Any] = []

    def draw(self) -> tuple[Any, ...]:
        """All operations; a fault before the very first step is drawn now and then."""
        self._draw_first_failure()
        self._out.append(self._step())
        while not self._choices.exhausted and len(self._out) < LIMIT:
            if self._choices.chance(110):
                self._out.append(self._step())
            else:
                getattr(self, f"_draw_{self._choices.pick(self._kinds)}")()
        return tuple(self._out[:LIMIT])

    def _draw_first_failure(self) -> None:
        """A fault that the very first step meets; a shadow that is not to be had wherever there are shadows."""
        choices = self._choices
        shadows = any(e.copy_threshold and e.platform == "ROCM" for e in self._configuration.executables)
        if self._configuration.compare or self._configuration.rounds > 1:
            return
        if shadows and choices.chance(40):
            failing = ops.Fail("alloc", 1 + choices.below(3))
        elif "fail" in self._kinds and choices.chance(64):
            failing = ops.Fail(choices.pick(FAILING_FIRST), choices.pick((1, 1, 1, 2, 3)))
        else:
            return
        where = self._where()
        self._out += [failing, self._step(where), self._step(where)]

    # -- operands

    def _where(self) -> dict[str, Any]:
        configuration = self._configuration
        return {
            "executable": self._choices.below(len(configuration.executables)),
            "device": self._choices.below(configuration.devices),
        }

    def _slots_of(self, where: dict[str, int]) -> tuple[ops.SlotPlan, ...]:
        return self._configuration.executables[where["executable"]].slots

    def _slot_of(self, where: dict[str, int]) -> int:
        return self._choices.below(len(self._slots_of(where)))

    def _partner(self, where: dict[str, int], slot: int) -> int:
        """A slot that may share its buffer with ``slot``, if there is another one."""
        slots = self._slots_of(where)
        mine = slots[slot]
        alike = [
            number
            for number, other in enumerate(slots)
            if number != slot and (other.space, other.read_only) == (mine.space, mine.read_only) and other.size
        ]
        return self._choices.pick(alike) if alike else slot

    def _step(self, where: dict[str, Any] | None = None) -> ops.Step:
        choices = self._choices
        where = where or self._where()
        outcome = ops.Outcome.OK
        if not self._configuration.compare and choices.chance(36):
            outcome = choices.pick((ops.Outcome.RAISE_AFTER, ops.Outcome.RAISE_AFTER, ops.Outcome.RAISE_BEFORE))
        uses = None
        if choices.chance(40):
            uses = tuple(choices.pick(tuple(Use)) for _ in self._slots_of(where))
        return ops.Step(
            **where,
            stream=choices.below(self._configuration.streams),
            uses=uses,
            outcome=outcome,
            probe=bool(self._probes) and not self._configuration.compare and choices.chance(24),
        )

    def _fail(self) -> ops.Fail:
        choices = self._choices
        return ops.Fail(choices.pick(FAILING), 1 + choices.pick((0, 0, 0, 1, 1, 2)), choices.pick(STATUSES))

    # -- kinds

    def _draw_move(self) -> None:
        where = self._where()
        for _ in range(1 + self._choices.below(3)):
            self._out.append(ops.Move(self._slot_of(where), **where))
        self._out.append(self._step(where))

    def _draw_swap(self) -> None:
        where = self._where()
        slot = self._slot_of(where)
        self._out.append(ops.Swap(slot, self._partner(where, slot), **where))

    def _draw_bind(self) -> None:
        where = self._where()
        slot = self._slot_of(where)
        self._out += [ops.Bind(slot, self._partner(where, slot), **where), self._step(where)]
        if self._choices.chance(128):
            self._out.append(ops.Move(slot, **where))

    def _draw_recreate(self) -> None:
        where = self._where()
        self._out += [ops.Recreate(self._slot_of(where), **where), self._step(where)]

    def _draw_shrink(self) -> None:
        where = self._where()
        slot = self._slot_of(where)
        size = self._slots_of(where)[slot].size
        smaller = self._choices.pick((size - 1, size // 2, size, size - 8, 1))
        if self._choices.chance(40):
            smaller = 0
        self._out += [ops.Resize(slot, max(0, smaller), **where), self._step(where)]
        if self._choices.chance(160):
            self._out.append(ops.Resize(slot, size, **where))

    def _draw_vacate(self) -> None:
        """One slot goes out of use while others exchange or share their buffers, and all comes back."""
        where = self._where()
        slot, one = self._slot_of(where), self._slot_of(where)
        other = self._partner(where, one)
        change = ops.Bind if self._choices.chance(128) else ops.Swap
        back = ops.Move(one, **where) if change is ops.Bind else ops.Swap(one, other, **where)
        size = self._slots_of(where)[slot].size
        self._out += [
            ops.Resize(slot, 0, **where), change(one, other, **where), self._step(where),
            ops.Resize(slot, size, **where), back, self._step(where),
        ]  # fmt: skip

    def _draw_grow(self) -> None:
        where = self._where()
        slot = self._slot_of(where)
        size = self._slots_of(where)[slot].size
        granule = self._configuration.recommended
        self._out += [
            ops.Resize(slot, self._choices.pick((size + 1, size + granule, granule + 1, size * 2)), **where),
            self._step(where),
            ops.Resize(slot, size, **where),
        ]

    def _draw_disturb(self) -> None:
        where = self._where()
        slot = self._slot_of(where)
        damage = self._choices.pick((ops.Damage.NO_HANDLE, ops.Damage.NULL, ops.Damage.UNMAPPED))
        self._out += [ops.Disturb(slot, damage, **where), self._step(where), ops.Move(slot, **where)]

    def _draw_refill(self) -> None:
        where = self._where()
        stream = self._choices.below(self._configuration.streams)
        self._out.append(ops.Refill(self._slot_of(where), stream, **where))
        self._out.append(ops.Step(**where, stream=stream))

    def _draw_fail(self) -> None:
        where = self._where()
        self._out.append(self._fail())
        self._out.append(ops.Move(self._slot_of(where), **where))
        self._out += [self._step(where), self._step(where)]

    def _draw_progress(self) -> None:
        self._out.append(
            ops.Progress(self._choices.below(self._configuration.streams), 1 + self._choices.below(4), **self._device())
        )

    def _draw_order(self) -> None:
        streams = self._configuration.streams
        if streams > 1:
            first = self._choices.below(streams)
            self._out.append(ops.Order(first, (first + 1) % streams, **self._device()))

    def _draw_synchronize(self) -> None:
        self._out.append(ops.Synchronize(self._choices.below(self._configuration.streams), **self._device()))

    def _draw_close(self) -> None:
        """Late in the program, for nothing is tested of an executor that is closed."""
        if len(self._out) > LIMIT * 2 // 3 or self._choices.chance(16):
            self._out.append(ops.Close(self._choices.below(len(self._configuration.executables))))

    def _device(self) -> dict[str, int]:
        return {"device": self._choices.below(self._configuration.devices)}
