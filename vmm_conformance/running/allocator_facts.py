"""The driver that a program of the contract ``allocator`` asks for, and what a judge must know of it."""

from __future__ import annotations

from typing import Any, Final

from vmm_conformance.contracts import (
    Driver,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Granularity,
    SpaceSpec,
    capability,
)
from vmm_conformance.drivers.opening import OWN
from vmm_conformance.programs import allocator as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.allocator_holds import never_over
from vmm_conformance.running.fitted import alone
from vmm_conformance.running.opened import tolerance

PATHS: Final = "ALLOCATOR-23"
LATE_PEERS: Final = "ALLOCATOR-16"
PARTS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("grow", ("ALLOCATOR-6",)),
    ("shrink", ("ALLOCATOR-11",)),
    ("trim", ("ALLOCATOR-12",)),
    ("pause", ("ALLOCATOR-13", "ALLOCATOR-14", "ALLOCATOR-15")),
    ("late_peers", (LATE_PEERS,)),
    ("statistics", ("ALLOCATOR-17",)),
    ("captures", ("ALLOCATOR-19", "ALLOCATOR-20")),
    ("address_space", ("ALLOCATOR-22",)),
    ("paths", (PATHS,)),
)
"""The capabilities without which invariants say nothing."""
WAITS: Final = "ALLOCATOR-21"
STREAM_ORDER: Final = ("ALLOCATOR-5", WAITS)


def driver_options(configuration: ops.Configuration) -> DriverOptions:
    """The driver that a configuration asks for."""
    return DriverOptions(
        devices=configuration.devices,
        capacity=configuration.capacity,
        granularity=Granularity(configuration.minimum, configuration.recommended),
        spaces={space.number: SpaceSpec(space.alignment) for space in configuration.spaces},
        capabilities=DriverCapabilities(
            unmap_spans_mappings=configuration.unmap_spans,
            set_access_spans_mappings=configuration.access_spans,
            partial_map=configuration.partial_map,
        ),
        peers=configuration.peers,
        schedule="eager" if configuration.eager else "late",
    )


def _served(configuration: ops.Configuration, subject: Any, driver: Driver) -> tuple[int, ...]:
    """The memory spaces that the program names, the subject declares and the driver knows."""
    declared = capability(subject, "spaces")
    wanted = (space.number for space in configuration.spaces if space.number in declared)
    return tuple(space for space in wanted if _known(driver, space)) or (0,)


def _known(driver: Driver, space: int) -> bool:
    try:
        driver.space_alignment(0, space)
    except DriverError:
        return False
    return True


def header(program: Program, subject: Any, driver: Driver, options: DriverOptions) -> dict[str, Any]:
    """What a judge must know: per space recommended granularity and alignment, per device free bytes."""
    spaces = _served(program.configuration, subject, driver)
    return {
        "contract": program.contract,
        "configuration": program.configuration,
        "options": options,
        "granularity": {space: driver.granularity(0, space).recommended for space in spaces},
        "alignment": {space: driver.space_alignment(0, space) for space in spaces},
        "capacity": {device: driver.mem_info(device).free for device in range(driver.device_count)},
        "unmap_waits": driver.capabilities.unmap_waits,
        "traced": bool(capability(subject, "traced")),
        "reported": driver.name == OWN,
        "segment": capability(subject, "segment"),
        "memory": {device: driver.mem_info(device).total for device in range(driver.device_count)},
        "address_space": capability(subject, "address_space"),
        "paths": tuple(capability(subject, "paths")),
        "each_of": {PATHS: tuple(capability(subject, "paths"))} if capability(subject, "paths") else {},
        "rounds": program.configuration.rounds,
        "tolerance": tolerance(driver),
        "reaches": {device: _peers(driver, device) for device in range(driver.device_count)},
        "not_applicable": _not_applicable(subject, driver) | alone(driver, options, LATE_PEERS),
    }


def _peers(driver: Driver, device: int) -> tuple[int, ...]:
    """The other devices that can reach memory of ``device``."""
    others = (peer for peer in range(driver.device_count) if peer != device)
    return tuple(peer for peer in others if driver.can_access_peer(peer, device))


def _not_applicable(subject: Any, driver: Driver) -> dict[str, str]:
    """Why invariants do not apply: parts that the subject does not declare, order that its caller keeps, a driver."""
    declared = {name: capability(subject, name) for name, _ in PARTS}
    reasons = {id: f"the subject declares {name}={declared[name]}" for name, ids in PARTS for id in ids
               if not declared[name]}  # fmt: skip
    if unheld := never_over(subject, driver):
        reasons[WAITS] = unheld
    if capability(subject, "deallocate") == "immediate":
        why = "the subject declares deallocate=immediate: its caller waits for work first"
        reasons |= dict.fromkeys(STREAM_ORDER, why)
    return reasons
