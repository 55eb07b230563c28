"""The driver and the devices that a program of ``vmm-allocator`` asks for, and what a judge must know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from vmm_conformance.contracts import HOST_SPACE, DeviceConfig, Driver, DriverOptions, Granularity, capability
from vmm_conformance.drivers.opening import OWN
from vmm_conformance.programs import vmm_allocator as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.opened import tolerance

CONCURRENT: Final = "ALLOC-80"
PARTS: Final = "ALLOC-56"
"""Needs a source that shows in part."""


def driver_options(configuration: ops.Configuration) -> DriverOptions:
    """The driver that a configuration asks for."""
    return DriverOptions(
        devices=configuration.devices,
        capacity=configuration.capacity,
        granularity=Granularity(configuration.minimum, configuration.recommended),
        schedule="eager" if configuration.eager else "late",
    )


def found_options(asked: DriverOptions, driver: Driver) -> DriverOptions:
    """What ``driver`` has come to be, which on a device is not what it was asked to be."""
    return replace(
        asked,
        devices=min(asked.devices, driver.device_count),
        granularity=driver.granularity(0),
        capacity=driver.mem_info(0).free,
    )


def device_configs(configuration: ops.Configuration, streams: Sequence[int]) -> tuple[DeviceConfig, ...]:
    """The devices of the allocator."""
    return tuple(
        DeviceConfig(ordinal, stream, configuration.budget, configuration.exempt)
        for ordinal, stream in enumerate(streams)
    )


def header(
    program: Program, subject: Any, driver: Driver, options: DriverOptions, streams: Sequence[int]
) -> dict[str, Any]:
    """What a judge must know. ``spaces`` are the memory spaces that programs name, the host's last."""
    declared = capability(subject, "spaces")
    served = [space for space in declared if space != HOST_SPACE and space in options.spaces] or [0]
    scheduled = bool(capability(subject, "scheduled"))
    names = ("second_alias", "markers", "batch_limits", "host_allocator", "traced")
    return {
        "contract": program.contract,
        "configuration": program.configuration,
        "options": options,
        "streams": tuple(streams),
        "spaces": (served[0], served[-1], HOST_SPACE),
        "scheduled": scheduled,
        "reported": driver.name == OWN,
        "rounds": program.configuration.rounds,
        "tolerance": tolerance(driver),
        "not_applicable": {
            **({} if scheduled else {CONCURRENT: "the subject declares scheduled=False"}),
            **({} if driver.capabilities.partial_map else {PARTS: "the driver maps no part of a handle"}),
        },
        **{name: capability(subject, name) for name in names},
    }
