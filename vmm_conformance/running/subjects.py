"""Finds subjects by name, and drivers too."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any, Final

from vmm_conformance.contracts import CONTRACTS, Driver, DriverOptions, contracts_of
from vmm_conformance.drivers import opening
from vmm_conformance.drivers.opening import DRIVERS
from vmm_conformance.running.ended import Ended
from vmm_conformance.running.proc.subject import CommandError, ProcSubject

__all__ = ["DRIVERS", "GROUP", "SubjectNotFound", "installed_subjects", "open_driver", "resolve_subject", "unavailable"]

GROUP: Final = "vmm_conformance.subjects"
PROC: Final = "proc"
"""What a spec begins with that goes on with ``:COMMAND``, or with ``,emulate=cuda:COMMAND``."""


class SubjectNotFound(ValueError):
    """No such subject; the message is one line that says what is accepted."""


def installed_subjects() -> tuple[str, ...]:
    """Names of the subjects that installed packages offer."""
    return tuple(sorted({entry.name for entry in metadata.entry_points(group=GROUP)}))


def resolve_subject(spec: str) -> object:
    """The subject that ``spec`` names: an installed name or ``module:attribute``, then ``,key=value`` pairs.

    A class, or anything that takes parameters, is called with them. ``proc:COMMAND`` is a process that is
    started, see `proc`. Raises `SubjectNotFound`.
    """
    if spec.startswith((f"{PROC}:", f"{PROC},")):
        return _started(spec)
    name, *pairs = spec.split(",")
    parameters = dict(_pair(pair, spec) for pair in pairs)
    found = _attribute(name) if ":" in name else _installed(name)
    if isinstance(found, type) or parameters:
        found = _call(found, parameters, spec)
    if not contracts_of(found):
        factories = ", ".join(CONTRACTS.values())
        raise SubjectNotFound(f"subject {spec!r} offers no contract; give it one of these factories: {factories}")
    return found


def driver_of(subject: object, name: str) -> Callable[[DriverOptions], Driver]:
    """What opens the driver of that name for ``subject``. Raises ``ValueError`` as `open_driver` does."""
    own: Callable[[DriverOptions], Driver] | None = getattr(subject, "own_driver", None)
    return own if own is not None and opening.parse(name).name == opening.OWN else open_driver(name)


def open_driver(name: str) -> Callable[[DriverOptions], Driver]:
    """The factory of a driver by name, which may have parameters. Raises ``ValueError`` that lists the known ones."""
    return opening.opener(name)


def unavailable(subject: object, driver: str) -> str:
    """Why nothing can be run here: what is missing for the subject, or else for ``driver``.

    A subject that is a driver needs no other.
    """
    facts: opening.DriverFacts | None = getattr(subject, "facts", None)
    if facts is not None:
        return facts.missing
    missing: Callable[[str], str] = getattr(subject, "missing", _lacks_own)
    return missing(driver) or opening.facts(driver).missing


def _lacks_own(driver: str) -> str:
    own = driver == opening.OWN
    return f"only a subject in another process has a driver of its own; {driver!r} is none for this one" if own else ""


def _started(spec: str) -> object:
    head, _, command = spec.partition(":")
    parameters = dict(_pair(pair, spec) for pair in head.split(",")[1:])
    if set(parameters) - {"emulate"}:
        raise SubjectNotFound(f"subject {spec!r}: {PROC} takes emulate=cuda or emulate=hip, and :COMMAND behind it")
    try:
        return ProcSubject(command, **parameters)
    except CommandError as error:
        raise SubjectNotFound(f"subject {spec!r} cannot be had: {error}") from None
    except Ended as ended:
        told = f"; the last it told: {ended.stack[-1]}" if ended.stack else ""
        raise SubjectNotFound(f"subject {spec!r} cannot be had: its process {ended}{told}") from None


def _pair(text: str, spec: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise SubjectNotFound(f"subject {spec!r}: expected key=value behind the comma, got {text!r}")
    return key, value


def _installed(name: str) -> Any:
    for entry_point in metadata.entry_points(group=GROUP):
        if entry_point.name == name:
            return entry_point.load()
    raise SubjectNotFound(
        f"unknown subject {name!r}; installed: {', '.join(installed_subjects())};"
        " or give module:attribute or proc:COMMAND"
    )


def _attribute(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise SubjectNotFound(f"subject {name!r} cannot be had: {error}") from None
    return found


def _call(factory: Any, parameters: dict[str, str], spec: str) -> Any:
    if not callable(factory):
        raise SubjectNotFound(f"subject {spec!r} takes no parameters, since it is no class or function")
    try:
        return factory(**parameters)
    except (TypeError, ValueError) as error:
        raise SubjectNotFound(f"subject {spec!r}: {error}") from None
