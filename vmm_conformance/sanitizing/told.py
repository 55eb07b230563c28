"""What a watched process tells: plain data, written when it ends and read by who started it."""

from __future__ import annotations

import json
import sysconfig
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from vmm_conformance.running.watching import Place

_NOT_THE_PROGRAM: Final = tuple(
    path for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_paths().get(name))
)


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that is wrong, and how often it came up the same way.

    ``stack`` is that of the call that is wrong (of what was leaked: that which took it), ``cause`` that of the
    call that led there; both innermost first, as (file, line, function).
    """

    kind: str
    invariant: str
    message: str
    stack: tuple[Place, ...]
    cause: tuple[Place, ...] = ()
    times: int = 1

    def line(self) -> Place | None:
        """The innermost line of the program itself, or else of whatever called."""
        return own_line(self.stack)


def own_line(stack: tuple[Place, ...]) -> Place | None:
    """The innermost place that is neither in an installed package nor in Python's own library."""
    own = (place for place in stack if not place.file.startswith((*_NOT_THE_PROGRAM, "<frozen")))
    return next(own, stack[0] if stack else None)


@dataclass(frozen=True, slots=True)
class Told:
    """One process: its command line, how many driver calls it made, what was wrong, and what is not emulated.

    ``missing`` counts calls of functions that have no emulation; ``broken`` says what went wrong on our side.
    """

    pid: int
    command: tuple[str, ...]
    vendor: str
    calls: int
    wrong: tuple[Wrong, ...] = ()
    missing: dict[str, int] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    def write(self, folder: Path) -> None:
        """Into a file of its own."""
        folder.joinpath(f"told-{self.pid}.json").write_text(json.dumps(self.to_json()), "utf-8")


def read_all(folder: Path) -> list[Told]:
    """What every process told, in the order of their ids."""
    return [_told(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("told-*.json"))]


def _told(data: dict[str, Any]) -> Told:
    wrong = tuple(
        Wrong(**{**entry, "stack": _places(entry["stack"]), "cause": _places(entry["cause"])})
        for entry in data["wrong"]
    )
    return Told(**{**data, "command": tuple(data["command"]), "wrong": wrong, "broken": tuple(data["broken"])})


def _places(stack: list[list[Any]]) -> tuple[Place, ...]:
    return tuple(Place(*place) for place in stack)
