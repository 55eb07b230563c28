"""Programs on a machine that is not as they ask: one device, granules of 2 MiB, and what CUDA can do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vmm_conformance.contracts import DriverCapabilities, DriverOptions, Granularity
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.programs import skip_remap as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.explore import Bench, generate
from vmm_conformance.running.fitted import alone, fitted
from vmm_conformance.running.plugs import plug
from vmm_conformance.running.session import resolve_known
from vmm_conformance.running.suites import load_suites

G, LARGE = 4096, 2 << 20
CAN = DriverCapabilities(set_access_part_of_mapping=True, partial_map=False, copy_spans_reservations=True)


def machine(options):
    """A driver that takes nothing of ``options`` but the memory spaces."""
    return HostDriver(
        replace(
            options, devices=1, capacity=4 << 30, granularity=Granularity(LARGE, LARGE), capabilities=CAN,
            schedule="eager",
        )
    )  # fmt: skip


@pytest.mark.parametrize("contract", ["allocator", "reservation", "skip-remap", "va-remap", "vmm-allocator"])
def test_the_reference_is_conformant_on_it(contract):
    bench = Bench(plug(contract), resolve_known("reference"), machine, frozenset())
    suite = next(suite for suite in load_suites() if suite.contract == contract)
    for scenario in suite.scenarios[::3]:
        assert bench.run(scenario.program).judge.findings == [], scenario.id
    pins = [exploration.pins for exploration in suite.explorations]

    def consume(data):
        assert bench.run(bench.decode(data, pins[0])).judge.findings == []

    generate(12, 0, consume)


SLOTS = tuple(ops.SlotPlan(size) for size in (1, G - 1, G, G + 1, 3 * G))
PLAN = ops.ExecutablePlan(SLOTS, (ops.CommandPlan((0, 1)),), copy_threshold=G)


def test_sizes_keep_their_granules_and_the_bytes_beyond():
    asked = Program("skip-remap", ops.Configuration((PLAN,), devices=2), (ops.Resize(0, 2 * G + 1), ops.Move(1)))
    driver = machine(DriverOptions())
    program = fitted(asked, driver)
    driver.close()
    (plan,) = program.configuration.executables
    assert [slot.size for slot in plan.slots] == [1, G - 1, LARGE, LARGE + 1, 3 * LARGE]
    assert plan.copy_threshold == LARGE
    assert program.operations == (ops.Resize(0, 2 * LARGE + 1), ops.Move(1))
    assert (program.configuration.devices, program.configuration.minimum, program.configuration.recommended) == (
        1, LARGE, LARGE,
    )  # fmt: skip


def test_with_one_device_what_needs_two_is_not_applicable():
    driver = machine(DriverOptions(devices=2))
    assert alone(driver, DriverOptions(devices=2), "RES-8") == {"RES-8": "the driver has one device"}
    assert alone(driver, DriverOptions(), "RES-8") == {}
    driver.close()


def test_a_program_is_the_same_on_a_driver_that_is_as_asked():
    asked = Program("skip-remap", ops.Configuration((PLAN,)), (ops.Resize(0, 2 * G + 1),))
    driver = HostDriver(DriverOptions())
    assert fitted(asked, driver) == asked
    driver.close()
