"""One failure on one screen: as wide as the terminal, and about 40 lines."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from vmm_conformance.catalogue import Invariant
from vmm_conformance.reporting.addressmap import draw, sorted_rows
from vmm_conformance.reporting.symbolic import symbolic
from vmm_conformance.reporting.text import clip, count, few, pairs, wrap
from vmm_conformance.running.results import Failure

OPERATIONS_SHOWN = 9
RANGES_SHOWN = 8
_KEY = 15


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a failure was found.

    ``subject`` and ``driver`` are as they call themselves, ``spec`` is the subject as it was asked for,
    ``file`` where the failure's program lies.
    """

    subject: str
    driver: str
    spec: str
    file: str
    seed: int = 0


def failure_screen(failure: Failure, invariant: Invariant, scene: Scene, *, width: int = 80) -> str:
    """What is broken, where, by which program, what was expected, and how to see it again."""
    failure = symbolic(failure)
    blocks = [
        _headline(invariant, width),
        _setting(failure, scene, width),
        _program(failure, width),
        _map(failure, width),
        _tail(failure, scene, width),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def replay_command(file: str, spec: str, driver: str) -> str:
    """The command that runs the program in ``file`` on the subject ``spec`` again, over ``driver``."""
    other = "" if driver == "host" else f" --driver {driver}"
    return f"vmm-conformance replay {shlex.quote(file)} --subject {shlex.quote(spec)}{other}"


def _headline(invariant: Invariant, width: int) -> list[str]:
    title = f"{invariant.id}  {invariant.level}, {invariant.evidence}"
    return [title, *wrap(invariant.statement, width, indent="  ", lines=4)]


def _field(key: str, text: str, width: int, lines: int = 3, indent: str = "") -> list[str]:
    return wrap(text, width, indent=(indent + key).ljust(_KEY), lines=lines)


def _setting(failure: Failure, scene: Scene, width: int) -> list[str]:
    operations = count(len(failure.program["operations"]), "operation")
    found = f"seed {scene.seed}, program {max(failure.programs_before, 1)}; "
    found += f"shortened to {operations}, {failure.repeats}"
    lines = _field("subject", f"{scene.subject} over {scene.driver}", width)
    configuration = failure.program.get("configuration") or {}
    lines += _field("contract", str(failure.program["contract"]), width)
    lines += _field("configuration", pairs(configuration) or "default", width)
    return lines + _field("found", found, width)


def _program(failure: Failure, width: int) -> list[str]:
    rows = list(enumerate(map(_operation, failure.program["operations"])))
    if failure.op >= len(rows):
        rows.append((len(rows), "(end of the program)"))
    shown = rows[: failure.op + 1]
    left_out = max(len(shown) - OPERATIONS_SHOWN, 0)
    returned = [failure.outcomes[n] if n < len(failure.outcomes) else "-" for n, _ in shown]
    right = min(max(map(len, [*returned[left_out:], "returned"])), width // 3)
    widest = max((len(text) for _, text in shown[left_out:]), default=0)
    left = min(width, max(80, 9 + widest + right)) - 7 - 2 - right  # what it returned stays near the operation
    lines = [f"{'program':<{7 + left}}  returned"]
    if left_out:
        lines.append(f"       ({count(left_out, 'operation')} before)")
    for number, text in shown[left_out:]:
        sign = ">" if number == failure.op else " "
        first, *more = wrap(text, left, lines=2 if len(shown) < OPERATIONS_SHOWN - 3 else 1)
        lines.append(f"{sign} {number:>3}  {first:<{left}}  {clip(returned[number], right)}")
        lines += [" " * 9 + line for line in more]
    return lines + _verdict(failure, width)


def _operation(operation: dict[str, Any]) -> str:
    return f"{operation.get('op', '?')} {pairs(operation, skip=('op',))}".strip()


def _verdict(failure: Failure, width: int) -> list[str]:
    lines = _field("broken", failure.message, width, lines=3, indent="    ")
    if failure.expected:
        lines += _field("expected", failure.expected, width, lines=2, indent="    ")
    if failure.actual:
        lines += _field("actual", failure.actual, width, lines=2, indent="    ")
    return lines


def _map(failure: Failure, width: int) -> list[str]:
    drawn = draw(sorted_rows(failure.map), width, RANGES_SHOWN)
    return [f"address map {drawn[0]}", *drawn[1:]] if drawn else []


def _tail(failure: Failure, scene: Scene, width: int) -> list[str]:
    lines = _field("consequences", few(failure.consequences, 8), width) if failure.consequences else []
    command = replay_command(scene.file, scene.spec, scene.driver)
    if len(command) > width - _KEY:
        return [*lines, "replay", f"  {command}"]
    return [*lines, "replay".ljust(_KEY) + command]
