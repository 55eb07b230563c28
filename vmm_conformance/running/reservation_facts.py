"""The driver that a program of the contract ``reservation`` asks for, and what a judge must know of it."""

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
from vmm_conformance.programs import reservation as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.fitted import alone

REACH: Final = "RES-8"
"""Needs a device that another one cannot reach."""


def driver_options(configuration: ops.Configuration) -> DriverOptions:
    """The driver that a configuration asks for."""
    return DriverOptions(
        devices=configuration.devices,
        capacity=configuration.capacity,
        granularity=Granularity(configuration.minimum, configuration.recommended),
        spaces={space: SpaceSpec() for space in configuration.spaces},
        capabilities=DriverCapabilities(
            unmap_spans_mappings=configuration.unmap_spans,
            set_access_spans_mappings=configuration.access_spans,
            partial_map=configuration.partial_map,
            map_offset=configuration.map_offset,
        ),
        peers=configuration.peers,
    )


def _served(configuration: ops.Configuration, subject: Any, driver: Driver) -> tuple[int, ...]:
    """The memory spaces that the program names, the subject declares and the driver knows."""
    declared = capability(subject, "spaces")
    return tuple(space for space in configuration.spaces if space in declared and _known(driver, space)) or (0,)


def _known(driver: Driver, space: int) -> bool:
    try:
        driver.space_alignment(0, space)
    except DriverError:
        return False
    return True


def reach(driver: Driver, device: int) -> tuple[int, ...]:
    """The device, and those that can reach its memory."""
    peers = (peer for peer in range(driver.device_count) if peer != device)
    return (device, *(peer for peer in peers if driver.can_access_peer(peer, device)))


def header(program: Program, subject: Any, driver: Driver, options: DriverOptions) -> dict[str, Any]:
    """What a judge must know.

    ``granularity``: minimum and recommended, in bytes. ``reach``: per device, who can reach its memory.
    ``scopes``: how the subject declares to group its calls. ``takes``: the driver's capabilities.
    ``spaces``: those that the program uses.
    """
    devices = range(min(program.configuration.devices, driver.device_count))
    return {
        "contract": program.contract,
        "configuration": program.configuration,
        "options": options,
        "granularity": tuple(driver.granularity(0, 0)),
        "reach": {device: reach(driver, device) for device in devices},
        "devices": driver.device_count,
        "capacity": {device: driver.mem_info(device).free for device in devices},
        "scopes": {name: capability(subject, f"{name}_scope") for name in ("set_access", "unmap")},
        "aligned": bool(capability(subject, "reserve_alignment")),
        "takes": driver.capabilities,
        "spaces": _served(program.configuration, subject, driver),
        "traced": bool(capability(subject, "traced")),
        "not_applicable": alone(driver, options, REACH),
    }
