"""Runs a program of the contract ``skip-remap`` and records what happens."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from vmm_conformance.contracts import Driver, DriverCapabilities, DriverOptions, Granularity, capability
from vmm_conformance.history.events import HARNESS, History
from vmm_conformance.history.observe import observations
from vmm_conformance.programs import skip_remap as ops
from vmm_conformance.programs.program import Program
from vmm_conformance.running.fitted import fitted
from vmm_conformance.running.opened import OpenDriver, opened, tolerance
from vmm_conformance.running.recorder import Recorder
from vmm_conformance.running.step_run import StepRun
from vmm_conformance.running.threads import visible_locks

COMPARED_THRESHOLD = 1024
"""Copy threshold in bytes of the comparison's third run, where the program sets none."""


def run(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    """Run ``program`` on ``subject`` over a fresh driver.

    Under ``configuration.compare`` the program also runs with skip-remap off, on, and on with shadows, without its
    injected failures, which would strike other calls there; what those runs observed is appended as notes (STEP-158).
    """
    history = _run_once(program, subject, open_driver)
    if program.configuration.compare:
        recorder_op = len(program.operations)
        for name, variant in _variants(program).items():
            seen = observations(_run_once(variant, subject, open_driver))
            event = history.events[-1]
            history.events.append(
                type(event)(event.seq + 1, recorder_op, 0, HARNESS, "note", ("variant", {"name": name, "seen": seen}))
            )
    return history


def _variants(program: Program) -> dict[str, Program]:
    def changed(skip: bool, shadows: bool) -> Program:
        executables = tuple(
            replace(e, skip_remap=skip, copy_threshold=(e.copy_threshold or COMPARED_THRESHOLD) if shadows else 0)
            for e in program.configuration.executables
        )
        configuration = replace(program.configuration, executables=executables, compare=False)
        return replace(program, configuration=configuration, operations=operations)

    operations = tuple(operation for operation in program.operations if not isinstance(operation, ops.Fail))

    return {"skip off": changed(False, False), "skip on": changed(True, False), "shadows": changed(True, True)}


def driver_options(configuration: ops.Configuration) -> DriverOptions:
    """The driver that a configuration asks for."""
    return DriverOptions(
        devices=configuration.devices,
        capacity=16 << 20,
        granularity=Granularity(configuration.minimum, configuration.recommended),
        capabilities=DriverCapabilities(
            unmap_spans_mappings=configuration.unmap_spans,
            set_access_spans_mappings=configuration.access_spans,
            partial_map=configuration.partial_map,
        ),
        schedule="eager" if configuration.eager else "late",
    )


def _fitted(program: Program, driver: Driver) -> Program:
    """``program`` for what ``driver`` is, and for what it can do."""
    program, can = fitted(program, driver), driver.capabilities
    found = (can.unmap_spans_mappings, can.set_access_spans_mappings, can.partial_map)
    asked: ops.Configuration = program.configuration
    if found == (asked.unmap_spans, asked.access_spans, asked.partial_map):
        return program
    spans, access, partial = found
    configuration = replace(asked, unmap_spans=spans, access_spans=access, partial_map=partial)
    return replace(program, configuration=configuration)


def _run_once(program: Program, subject: Any, open_driver: OpenDriver) -> History:
    options = driver_options(program.configuration)
    with ExitStack() as stack:
        driver = stack.enter_context(opened(open_driver, options))
        program = _fitted(program, driver)
        history = History(
            {
                "contract": program.contract,
                "configuration": program.configuration,
                "options": options,
                "traced": bool(capability(subject, "traced")),
                "rounds": program.configuration.rounds,
                "tolerance": tolerance(driver),
            }
        )
        run = StepRun(program, subject, Recorder(driver, history))
        if any(isinstance(operation, ops.Step) and operation.probe for operation in program.operations):
            stack.enter_context(visible_locks(run.duel))
        run.all()
    return history
