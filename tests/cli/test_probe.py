"""``vmm-conformance probe``: capabilities as they are, costs as measured, and drivers that do not keep their word."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from vmm_conformance import commands
from vmm_conformance.cli import main
from vmm_conformance.contracts import CopyCosts, DeviceFigures, DriverCapabilities, DriverError, Status
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.reporting.probed import as_lines
from vmm_conformance.running.probe import probe
from vmm_reference.auto_threshold import auto_threshold

NAMES = [field.name for field in fields(DriverCapabilities)]


def with_capabilities(kind: type[HostDriver] = HostDriver, **declared: bool):
    """Opens a driver that declares, and has, these capabilities."""
    return lambda options: kind(replace(options, devices=2, capabilities=DriverCapabilities(**declared)))


def measured(open_driver) -> dict[str, bool | None]:
    return {tried.name: tried.measured for tried in probe(open_driver).capabilities}


def test_every_capability_is_tried_and_found():
    found = probe(HostDriver)
    assert [tried.name for tried in found.capabilities] == NAMES
    assert all(tried.measured is tried.declared for tried in found.capabilities)
    assert found.kept


@pytest.mark.parametrize("name", [name for name in NAMES if name != "progress"])
def test_the_other_way_round_it_is_found_too(name):
    usual = getattr(DriverCapabilities(), name)
    assert measured(with_capabilities(**{name: not usual}))[name] is not usual


class OneAtATime(HostDriver):
    """Declares that one unmap may take several mappings away, and refuses to."""

    def unmap(self, address, size):
        if size == 2 * self.options.granularity.recommended and address + size // 2 in self._regions:
            raise DriverError(Status.INVALID_VALUE, "unmap", "one at a time")
        super().unmap(address, size)


class RunsAhead(HostDriver):
    """Declares that work runs only when asked for, and runs all of it when asked for one."""

    def progress(self, stream, count=1):
        return super().progress(stream, 1000)


def test_a_driver_that_does_not_keep_its_word():
    found = probe(OneAtATime)
    assert not found.kept
    assert [tried.name for tried in found.capabilities if not tried.kept] == ["unmap_spans_mappings"]
    lines = as_lines(found)
    assert lines[-1] == "The driver does not do what it declares: unmap_spans_mappings."
    assert "  unmap_spans_mappings        no, DECLARED yes: unmap: INVALID_VALUE: one at a time" in lines


def test_work_that_runs_ahead_is_seen():
    (progress,) = [tried for tried in probe(RunsAhead).capabilities if not tried.kept]
    assert (progress.name, progress.detail) == ("progress", "of two queued fills progress ran 2")


def test_nothing_is_left_behind():
    opened: list[HostDriver] = []

    class Watched(HostDriver):
        def close(self):
            opened.append(self)
            assert self.live() == (0, 0, 0, 0, 0)
            super().close()

    probe(Watched)
    probe(with_capabilities(Watched, partial_map=False, set_access_part_of_mapping=True, unmap_waits=True))
    assert len(opened) == 2


class Broken(HostDriver):
    closed = False

    def alloc(self, *_, **__):
        raise DriverError(Status.OUT_OF_MEMORY, "alloc", "none left")

    def close(self):
        type(self).closed = True
        super().close()


def test_a_driver_that_fails_is_closed():
    with pytest.raises(DriverError):
        probe(Broken)
    assert Broken.closed


def test_costs_are_measured_and_serve_an_automatic_threshold():
    found = probe(HostDriver)
    costs = found.costs
    parts = (costs.map_ms, costs.set_access_ms, costs.unmap_ms, costs.copy_ms)
    assert all(part > 0 for part in parts)
    assert costs.remap_ms == pytest.approx(sum(parts[:3]))
    assert costs.copy_bytes_per_second > 0
    figures, inputs = found.auto_inputs()
    assert figures == DeviceFigures(costs.copy_bytes_per_second, 64 << 20, 64 << 20, 256)
    assert inputs == CopyCosts(costs.remap_ms, costs.copy_ms, 1.0)
    auto_threshold(figures, [64, 4096, 1 << 20], inputs)


def test_the_rate_is_measured_where_memory_is_short():
    found = probe(lambda options: HostDriver(replace(options, capacity=1 << 20)))
    assert found.costs.copied == 1 << 17


def test_command(capsys):
    assert main(["probe"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "driver                        host (no device behind it), 1 device"
    assert lines[2] == "device 0                      64 MiB free of 64 MiB; peers: none"
    assert lines[3] == "  memory space 0              granularity 4 KiB, recommended 4 KiB; alignment 256 B"
    assert lines[-1] == "The driver does what it declares."
    assert max(map(len, lines)) <= 100


def test_command_as_json(capsys):
    assert main(["probe", "--driver", "host", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["driver"], data["real"]) == ("host", False)
    assert [each["name"] for each in data["capabilities"]] == NAMES
    assert data["devices"][0]["granularity"]["0"] == [4096, 4096]
    assert data["auto_threshold"]["costs"]["remap_ms"] == data["remap_ms"]


def test_an_unknown_driver_is_one_line_and_2(capsys):
    assert main(["probe", "--driver", "tea"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("vmm-conformance probe: unknown driver 'tea'; accepted: host")


def test_a_driver_that_refuses_a_call_is_one_line_and_1(capsys, monkeypatch):
    monkeypatch.setattr(commands, "open_driver", lambda _: Broken)
    assert main(["probe"]) == 1
    assert capsys.readouterr() == (
        "",
        "vmm-conformance probe: the driver 'host' refuses what a probe needs: alloc: OUT_OF_MEMORY: none left;"
        " is there memory enough?\n",
    )


def test_help_teaches_by_example(capsys):
    with pytest.raises(SystemExit):
        main(["probe", "--help"])
    assert "example:\n  vmm-conformance probe" in capsys.readouterr().out
