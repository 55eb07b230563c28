"""Subjects by their specs, each made once in a process, and benches for them in this process."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import capability
from vmm_conformance.drivers.opening import OWN
from vmm_conformance.running.explore import Bench
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.proc.elsewhere import UNREAD
from vmm_conformance.running.subjects import driver_of, resolve_subject

_known: Final[dict[str, object]] = {}


def resolve_known(spec: str) -> object:
    """The subject of a spec, made once per process."""
    if spec not in _known:
        _known[spec] = resolve_subject(spec)
    return _known[spec]


def know(spec: str, subject: object) -> None:
    """Let ``spec`` stand for ``subject`` in this process."""
    _known[spec] = subject


def bench_for(contract: str, subject: object, driver: str = "host") -> Bench:
    """A subject ready to run programs of ``contract``."""
    return Bench(plug(contract), subject, driver_of(subject, driver), unseen(contract, subject, driver))


def unseen(contract: str, subject: object, driver: str) -> dict[str, str]:
    """What cannot be judged of a subject that does not use the driver it is given, and why."""
    from vmm_conformance.catalogue import catalogue

    traced = capability(subject, "traced")
    hidden = {} if traced else {entry.id: "no trace" for entry in catalogue().of(contract) if entry.trace == "yes"}
    unread = UNREAD.get(contract, ()) if driver == OWN else ()
    return hidden | dict.fromkeys(unread, "contents are not read in another process")
