"""A small catalogue, plan and results made by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from types import SimpleNamespace
from typing import Any

from vmm_conformance.catalogue import Catalogue, Invariant
from vmm_conformance.reporting.report import Report, build
from vmm_conformance.running.results import Failure, ItemResult
from vmm_conformance.waivers.listed import Waivers
from vmm_conformance.waivers.waiver import Waiver


def invariant(id: str, contract: str, level: str = "must", evidence: str = "documented") -> Invariant:
    statement = f"What {id} says must hold whenever a program reaches the place that it is about."
    return Invariant(id, level, evidence, contract, statement, "or else", "a document", f"a program for {id}")


CATALOGUE = Catalogue(
    "1.0",
    {
        entry.id: entry
        for entry in (
            invariant("ALLOCATOR-1", "allocator"),
            invariant("ALLOCATOR-2", "allocator", evidence="inferred"),
            invariant("ALLOCATOR-3", "allocator", level="should"),
            invariant("FLAG-147", "flags"),
            invariant("STEP-87", "skip-remap"),
        )
    },
)
OWN = ("ALLOCATOR-1", "ALLOCATOR-2", "ALLOCATOR-3")


@dataclass(frozen=True)
class Options:
    budget: str = "ci"
    seed: int = 0
    driver: str = "host"
    prefix: str = ""
    database: str = ""
    hardened: bool = False
    shard: str = ""


@dataclass(frozen=True)
class Item:
    id: str
    subject_spec: str = "thing"
    kind: str = "exploration"
    contract: str = "allocator"
    planned: int = 10


THING = SimpleNamespace(name="thing", version="1.2", allocator=lambda driver, device: None)
ITEMS = (Item("allocator/explore/a[thing]"), Item("allocator/explore/b[thing]"))
TODAY = date(2026, 12, 1)
BASE = 0x7F00_0000_0000


def result(item: str = ITEMS[0].id, witnesses: Any = None, **changes: Any) -> ItemResult:
    found = dict.fromkeys(OWN, 5) if witnesses is None else witnesses
    made = ItemResult(item, "exploration", "allocator", "thing", "host", 10, 10, witnesses=found, seconds=0.5)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def failure(invariant: str = "ALLOCATOR-1", operations: int = 3, **changes: Any) -> Failure:
    made = Failure(
        invariant=invariant,
        message="block 2 lies inside block 1, which is still live",
        expected="a range apart from [A+0x0, 8192 bytes)",
        actual="[A+0x1000, 4096 bytes)",
        op=operations - 1,
        program={
            "version": 1,
            "contract": "allocator",
            "configuration": {"devices": 1, "driver": {"granularity": [4096, 4096]}, "schedule": "late"},
            "operations": [{"op": "allocate", "size": 4096 * (n + 1)} for n in range(operations)],
        },
        outcomes=["ok"] * operations,
        map=[
            {"address": BASE, "size": 16384, "label": "reservation", "marked": False},
            {"address": BASE, "size": 8192, "label": "block 1", "marked": False},
            {"address": BASE + 4096, "size": 4096, "label": "block 2", "marked": True},
            {"address": BASE + (1 << 30), "size": 8192, "label": "block 3", "marked": False},
        ],
        programs_before=12,
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def waiver(invariant: str = "ALLOCATOR-1", **changes: Any) -> Waiver:
    values = {"reason": "known", "link": "https://example.org/7", "expires": TODAY, "subject": "thing"} | changes
    return Waiver(invariant, **values)


def report(*results: ItemResult, items: Any = ITEMS, subjects: Any = None, **changes: Any) -> Report:
    waivers = changes.pop("waivers", None)
    today = changes.pop("today", TODAY)
    devices = changes.pop("devices", None)
    if isinstance(waivers, dict):
        waivers = [waiver(id, reason=reason) for id, reason in waivers.items()]
    waivers = None if waivers is None else Waivers(tuple(waivers), today)
    given = results or tuple(result(item.id) for item in ITEMS)
    subjects = subjects or {"thing": THING}
    return build(given, items, Options(**changes), subjects, CATALOGUE, waivers=waivers, devices=devices)
