"""Other processes with drivers of their own: forks, fresh ones, and those that do not answer."""

from __future__ import annotations

import os
import time

import pytest

from vmm_conformance.contracts import Driver, DriverOptions
from vmm_conformance.drivers.calls import DriverUnavailable
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.running import driver_children
from vmm_conformance.running.driver_children import Unreachable, elsewhere, main

FREE = str(DriverOptions().capacity)


def make() -> Driver:
    return HostDriver(DriverOptions())


@pytest.mark.parametrize("depth", [1, 2])
def test_a_fork_answers(depth: int) -> None:
    assert elsewhere("mine", make, "look", 0, depth=depth) == FREE


def test_what_goes_wrong_there_is_told_here() -> None:
    assert elsewhere("mine", make, "look", 7).startswith("failed: DriverError: mem_info: INVALID_DEVICE")


def test_a_driver_that_is_not_to_be_had_there_is_unreachable() -> None:
    def none() -> Driver:
        raise DriverUnavailable("no device")

    with pytest.raises(Unreachable, match="no device"):
        elsewhere("mine", none, "look", 0)


def test_a_process_that_just_ends_has_said_nothing() -> None:
    assert elsewhere("mine", lambda: os._exit(3), "look", 0) == "failed: the other process ended without a word"


def test_a_process_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow() -> Driver:
        time.sleep(60)
        return make()

    monkeypatch.setattr(driver_children, "PATIENCE", 0.1)
    start = time.monotonic()
    assert elsewhere("mine", slow, "look", 0) == "failed: nothing was heard of the other process"
    assert time.monotonic() - start < 20


def test_a_fresh_process_answers_too_and_so_does_the_child_of_one() -> None:
    assert driver_children._started("host", "look", (0,), 2, ()) == FREE
    assert main(["host", "leave", "1", "", "0"]) == FREE
    assert driver_children._started("host", "dance", (0,), 1, ()) == "failed: KeyError: 'dance'"
