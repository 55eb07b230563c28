"""The driver that a program of the contract ``allocator`` asks for, and what a judge must know of it."""

from __future__ import annotations

from typing import Any

from vmm_conformance.contracts import (
    Driver,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Granularity,
    SpaceSpec,
    capability,
)
from vmm_conformance.programs import allocator as ops
from vmm_conformance.programs.program import Program

GROW = "ALLOCATOR-6"


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
    grows = bool(capability(subject, "grow"))
    return {
        "contract": program.contract,
        "configuration": program.configuration,
        "options": options,
        "granularity": {space: driver.granularity(0, space).recommended for space in spaces},
        "alignment": {space: driver.space_alignment(0, space) for space in spaces},
        "capacity": {device: driver.mem_info(device).free for device in range(driver.device_count)},
        "unmap_waits": driver.capabilities.unmap_waits,
        "traced": bool(capability(subject, "traced")),
        "not_applicable": {} if grows else {GROW: "the subject declares grow=False"},
    }
