"""Turns any bytes into a long program of the contract ``va-remap``.

More than half of a program are runs, since much shows only behind the third one that went well. Kinds of
operation are a swarm subset, sizes come from the boundaries first, and what spoils every further run (a lost
parameter, a coarser granularity) is repaired soon after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from vmm_conformance.contracts import BufferCommand, BufferKind, BufferSpec, Code, RemapMode
from vmm_conformance.programs import va_remap as ops
from vmm_conformance.programs.choices import Choices
from vmm_conformance.programs.program import Program

LENGTHS: Final = (25, 37)
"""Fewest and most operations of a drawn program whose bytes do not run out."""

MODES: Final = (
    *(RemapMode.SKIP_PROFILED,) * 5, *(RemapMode.SKIP_TEMP,) * 4, RemapMode.ALWAYS_UPDATE,
)  # fmt: skip
KINDS: Final = (
    BufferKind.TEMP, BufferKind.PARAMETER, BufferKind.OUTPUT, BufferKind.TEMP, BufferKind.PARAMETER,
    BufferKind.OUTPUT, BufferKind.PARAMETER, BufferKind.CONSTANT,
)  # fmt: skip
SPACES: Final = (0, 0, 0, 1, 1, 2)
CODES: Final = (Code.RESOURCE_EXHAUSTED, Code.INTERNAL, Code.UNAVAILABLE)
FAILING: Final = (
    "allocate", "map", "unmap", "create_reservation", "allocate_mapped", "allocate", "map", "unmap", "deallocate",
    "synchronize",
)  # fmt: skip
NAMES: Final = (
    *ops.MODE_NAMES, None, *ops.REMOVED_MODES, "SKIP", "FULL_UPDATE", "SKIP_TEMPS", "NONSENSE",
)  # fmt: skip

WEIGHTS: Final[tuple[tuple[type, int], ...]] = (
    (ops.Fail, 5), (ops.Bind, 3), (ops.Share, 2), (ops.Foreign, 2), (ops.Nullify, 2), (ops.Hold, 2),
    (ops.Free, 3), (ops.Drain, 2), (ops.Synchronize, 1), (ops.Coarsen, 1), (ops.Close, 2), (ops.ParseMode, 2),
)  # fmt: skip
"""How often each kind is drawn, `Run` aside."""


def decode(data: bytes, pins: Mapping[str, Any] | None = None) -> Program:
    """The program that ``data`` stands for.

    ``pins`` fixes fields of the configuration; ``mode`` that of every executable, ``executables`` their
    number, ``short`` makes budgets just large enough, and ``probe`` lets about every third run be met by a
    second thread.
    """
    choices, pins = Choices(data), dict(pins or {})
    probes = pins.pop("probe", choices.chance(20))
    configuration = _configuration(choices, pins)
    draw = _Draw(choices, configuration, probes)
    shortest, longest = LENGTHS
    length = shortest + choices.below(longest - shortest + 1)
    while len(draw.operations) < length and not choices.exhausted:
        draw.draw()
    return Program(ops.CONTRACT, configuration, tuple(draw.operations))


def _configuration(choices: Choices, pins: dict[str, Any]) -> ops.Configuration:
    granule = pins.get("recommended", choices.pick((4096, 4096, 8192)))
    count = pins.pop("executables", choices.pick((1, 1, 1, 2)))
    mode = RemapMode(pins.pop("mode")) if "mode" in pins else None
    short = pins.pop("short", choices.chance(64))
    plans = tuple(_executable(choices, granule, mode) for _ in range(count))
    need = max(sum(-(-b.size // granule) for b in p.buffers if b.kind is not BufferKind.CONSTANT) for p in plans)
    drawn = ops.Configuration(
        executables=plans,
        devices=choices.pick((1, 1, 1, 2)),
        recommended=granule,
        budget=need * count + choices.below(4) if short else 0,
        exempt=(1,) if choices.chance(48) else (),
        vmm=not choices.chance(12),
        consumer=choices.chance(96),
        eager=choices.chance(48),
    )
    return replace(drawn, **pins)


def _executable(choices: Choices, granule: int, mode: RemapMode | None) -> ops.ExecutablePlan:
    alike = _buffer(choices, granule)
    buffers = tuple(_like(alike, _buffer(choices, granule), choices) for _ in range(2 + choices.below(5)))
    commands = tuple(_command(choices, buffers) for _ in range(1 + choices.below(3)))
    drawn = choices.pick(MODES)
    return ops.ExecutablePlan(buffers, commands, mode or drawn, multi_device=choices.chance(24))


def _buffer(choices: Choices, granule: int) -> BufferSpec:
    kind = choices.pick(KINDS)
    size = choices.pick((granule, 100, granule + 1, granule, granule - 1, 2 * granule, 1, granule + 100))
    traits = choices.byte()
    parameter = kind is BufferKind.PARAMETER
    return BufferSpec(
        size=0 if traits > 250 else size,
        kind=kind,
        space=SPACES[traits % len(SPACES)],
        donatable=parameter and traits & 8 != 0,
        nullable=parameter and traits & 16 != 0,
    )


def _like(other: BufferSpec, buffer: BufferSpec, choices: Choices) -> BufferSpec:
    """Parameters are often alike, so that two of them can be one buffer."""
    if buffer.kind is BufferKind.PARAMETER and choices.chance(192):
        return replace(buffer, size=other.size, space=other.space)
    return buffer


def _command(choices: Choices, buffers: tuple[BufferSpec, ...]) -> BufferCommand:
    """Most buffers are named by some command."""
    named = choices.subset(range(len(buffers)), keep=170)
    writable = [n for n in named if buffers[n].kind in (BufferKind.OUTPUT, BufferKind.TEMP) or buffers[n].donatable]
    how = choices.byte()
    writes = tuple(n for n in writable if how >> n % 4 & 1 or buffers[n].kind is BufferKind.OUTPUT)
    return BufferCommand(tuple(n for n in named if n not in writes), writes, always_update=how > 224)


class _Draw:
    """Draws operations under one configuration."""

    def __init__(self, choices: Choices, configuration: ops.Configuration, probes: bool) -> None:
        self._choices = choices
        self._executables = len(configuration.executables)
        self._devices = configuration.devices
        self._granule = configuration.recommended
        self._probes = probes
        self._strange = choices.chance(96)
        failing = [*FAILING, *(["record"] * 6 if configuration.consumer else [])]
        self._failing = choices.subset(failing, keep=128)
        kept = choices.subset(WEIGHTS, keep=112)
        wheel = [kind for kind, weight in kept for _ in range(weight)]
        self._wheel = [*wheel, *[ops.Run] * max(6, 3 * len(wheel) // 2)]
        self._repairs: list[ops.Operation] = []
        self._makers = self._table()
        self.operations: list[ops.Operation] = []
        if choices.chance(104):
            self._begin_strangely()

    def _table(self) -> dict[type, Callable[[], ops.Operation]]:
        """How each kind of operation is drawn."""
        choices = self._choices
        return {
            ops.Run: self._run,
            ops.Bind: lambda: ops.Bind(choices.below(4), choices.below(3), *self._where()),
            ops.Share: lambda: ops.Share(choices.below(4), choices.below(4), *self._where()),
            ops.Foreign: lambda: ops.Foreign(choices.below(4), *self._where()),
            ops.Nullify: lambda: ops.Nullify(choices.below(4), *self._where()),
            ops.Hold: lambda: ops.Hold(
                choices.pick((self._granule, 100, 2 * self._granule)), SPACES[choices.below(6)], self._where()[1]
            ),
            ops.Free: lambda: ops.Free(choices.below(8)),
            ops.Drain: lambda: ops.Drain(self._where()[1]),
            ops.Synchronize: lambda: ops.Synchronize(self._where()[1]),
            ops.Coarsen: lambda: ops.Coarsen(self._where()[1]),
            ops.Fail: lambda: ops.Fail(choices.pick(self._failing), 1 + (0, 0, 1, 2)[choices.below(4)], self._code()),
            ops.Close: lambda: ops.Close(choices.below(self._executables)),
            ops.ParseMode: lambda: ops.ParseMode(choices.pick(NAMES)),
        }

    def _begin_strangely(self) -> None:
        """What a profile must see from the first run on: parameters that are one buffer, or not the allocator's."""
        executable, device = self._where()
        if self._choices.chance(160):
            self.operations.append(ops.Share(1, 0, executable, device))
        else:
            self.operations.append(ops.Foreign(self._choices.below(2), executable, device))

    def draw(self) -> None:
        """The next operation. After a `Fail` comes a run, since failures are for something."""
        last = self.operations[-1] if self.operations else None
        if self._repairs and self._choices.chance(96):
            self.operations.append(self._repairs.pop(0))
            return
        kind = ops.Run if type(last) is ops.Fail else self._choices.pick(self._wheel)
        made = self._makers[kind]()
        if isinstance(made, ops.Run) and isinstance(last, ops.Fail) and self._choices.chance(56):
            made = replace(made, result=ops.Result.RAISE_AFTER, ending=ops.Ending.TEARDOWN)
        self.operations.append(made)
        if isinstance(made, ops.Coarsen):
            self._repairs.append(made)
        elif isinstance(made, ops.Nullify | ops.Foreign) and self._choices.chance(176):
            self._repairs.append(ops.Bind(made.buffer, 0, made.executable, made.device))

    def _where(self) -> tuple[int, int]:
        place = self._choices.byte()
        return place % self._executables, (place >> 4) % self._devices

    def _code(self) -> Code:
        return CODES[self._choices.below(len(CODES))]

    def _run(self) -> ops.Run:
        choices = self._choices
        executable, device = self._where()
        how, odd = choices.byte(), choices.byte()
        probe, strange = choices.byte() if self._probes else 255, choices.byte() if self._strange else 255
        return ops.Run(
            executable=executable,
            device=device,
            stream=int(strange < 12),
            other=12 <= strange < 24,
            donate=how & 3 != 0,
            result=ops.Result.OK if odd > 40 else (ops.Result.RAISE_AFTER, ops.Result.RAISE_BEFORE)[odd & 1],
            ending=ops.Ending.TEARDOWN if how >> 2 > 10 else tuple(ops.Ending)[1 + (how >> 2) % 3],
            keep=how & 24 == 24,
            probe=ops.Probe.NONE if probe > 80 else tuple(ops.Probe)[1 + probe % 3],
            apart=probe <= 80 and probe & 12 == 12,
        )
