"""cuda.core's ``VirtualMemoryResource``, unmodified: every row of docs/found.md is found again."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from vmm_conformance.contracts import DriverOptions, Granularity
from vmm_conformance.drivers.opening import facts
from vmm_conformance.programs.files import load
from vmm_conformance.running.explore import Judged
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.subjects import SubjectNotFound, resolve_subject, unavailable
from vmm_conformance.subjects.cuda_core import CudaCore, cuda_core

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "found.md").read_text("utf-8")
SPEC = "vmm_conformance.subjects.cuda_core:cuda_core"
DRIVER = "emulated-cuda"


class Row(NamedTuple):
    program: str
    waits: bool
    invariant: str
    text: str


def _rows() -> Iterator[Row]:
    for name, waits, invariant, text in re.findall(
        r"^\| \[([\w-]+)\]\(found/\1\.json\) \| (yes|no) \| ([A-Z]+-\d+) \| (.*?) \|", PAGE, re.MULTILINE
    ):
        yield Row(name, waits == "yes", invariant, text)


ROWS = tuple(_rows())
SHRINKS = "shrunk-in-name"
SAYS = {
    "close-keeps-memory": "close leaves behind handle",
    "close-keeps-grown-memory": r"close leaves behind handle \d+ of 4096 bytes, handle \d+ of 4096 bytes$",
    "grown-to-odd-size": r"close leaves behind the reservation .* the mapping .* the mapping .* handle",
    "grown-to-its-own-size": "failed although nothing stands against it",
    "grown-twice": "has taken memory or rights from live block 1",
    "grow-fails": "has taken memory or rights from live block 1",
    "grow-out-of-memory": "met a fault: no access",
    "no-range-beside-it": "reports an error that it met while undoing",
    "map-fails": "reports an error that it met while undoing",
    "grow-fails-at-the-end": "has taken memory or rights from live block 1",
    "freed-under-work": r"unmap in deallocate\(.* may still use",
    "grown-under-work": r"unmap in grow\(.* may still use",
    SHRINKS: r"shrink\(block 1, size=4096, stream=\d+\) describes block 1 \(8192 bytes",
}
"""What the finding says, so that no other breach of the same invariant passes for it."""


def need(subject: object = cuda_core) -> None:
    missing = unavailable(subject, DRIVER)
    if missing:
        pytest.skip(missing)


def replay(row: Row) -> Judged:
    need()
    subject = CudaCore("immediate" if row.waits else "stream", "yes" if row.program == SHRINKS else "no")
    return bench_for("allocator", subject, DRIVER).run(load(DOCS / "found" / f"{row.program}.json"))


def test_every_program_has_its_row() -> None:
    assert {row.program for row in ROWS} == {file.stem for file in (DOCS / "found").glob("*.json")} == set(SAYS)
    assert {load(DOCS / "found" / f"{row.program}.json").contract for row in ROWS} == {"allocator"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.program)
def test_what_was_found_is_found_again(row: Row) -> None:
    found = replay(row).broken()
    assert re.search(SAYS[row.program], found[row.invariant].message), found


def test_growth_always_moves_though_the_range_beside_the_block_was_had() -> None:
    events = replay(next(row for row in ROWS if row.program == "close-keeps-grown-memory")).history.events
    asked = [event for event in events if event.kind == "reserve" and event.args[2]]
    assert [event.args[2] == event.result for event in asked] == [True]
    returned = [event.args[1]["address"] for event in events if event.kind == "note" and "address" in event.args[1]]
    assert len(set(returned)) == 2


class World:
    """cuda.core's own calls over an emulated driver, without the suite."""

    def __init__(self, driver: Any) -> None:
        from cuda.core import Device, Stream

        self.driver = driver
        self.stream = Stream.from_handle(driver.stream_create())
        self.device = Device(0)
        self.device.set_current()

    def resource(self, **options: Any) -> Any:
        from cuda.core import VirtualMemoryResource, VirtualMemoryResourceOptions

        return VirtualMemoryResource(self.device, VirtualMemoryResourceOptions(**options))


@pytest.fixture
def world() -> Iterator[World]:
    from vmm_conformance.drivers.opening import opener

    need()
    driver = opener(DRIVER)(DriverOptions(granularity=Granularity(4096, 4096)))
    try:
        yield World(driver)
    finally:
        driver.close()


def test_a_configuration_given_to_a_growth_stays(world: World) -> None:
    from cuda.core import VirtualMemoryResourceOptions

    resource = world.resource()
    other = VirtualMemoryResourceOptions(self_access="r")
    resource.modify_allocation(resource.allocate(4096, stream=world.stream), 8192, other).close(world.stream)
    assert resource.config is other


def test_buffers_without_a_handle_type_come_and_go(world: World) -> None:
    world.resource(handle_type=None).allocate(4096, stream=world.stream).close(world.stream)
    assert (world.driver.live().mappings, world.driver.live().reservations) == (0, 0)


def test_no_bytes_are_refused() -> None:
    need()
    from vmm_conformance.programs.allocator import Allocate, Configuration
    from vmm_conformance.programs.program import Program

    judged = bench_for("allocator", cuda_core, DRIVER).run(Program("allocator", Configuration(), (Allocate(0),)))
    assert judged.broken() == {}
    assert judged.judge.witnesses["ALLOCATOR-10"] == 1


def test_two_devices_behind_a_driver_with_one() -> None:
    """cuda.core looks once for how many devices there are; programs have one or two."""
    need()
    from vmm_suites.scenarios.allocator import SCENARIOS

    bench = bench_for("allocator", CudaCore("immediate"), DRIVER)
    for name in ("allocator-series", "allocator-grow-keeps-peers"):
        judged = bench.run(next(scenario.program for scenario in SCENARIOS if scenario.id == name))
        assert set(judged.broken()) == {"ALLOCATOR-8"}, name


def test_the_suite_runs_on_it_in_processes_of_its_own(tmp_path: Path) -> None:
    need()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pyargs", "vmm_suites", "-k", "no-bytes"]
    command += ["--vmm-subject", SPEC, "--vmm-driver", DRIVER, "--vmm-isolation", "process"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout
    assert re.search(r"cuda-core [\d.]+ with cuda-bindings [\d.]+ over emulated-cuda", done.stdout)


def test_a_replay_in_a_process_of_its_own_says_how_to_replay(tmp_path: Path) -> None:
    need()
    command = [sys.executable, "-m", "vmm_conformance.cli", "replay", str(DOCS / "found" / "grow-fails.json")]
    command += ["--subject", SPEC, "--driver", DRIVER, "--isolation", "process"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "ALLOCATOR-7" in done.stdout
    assert f"--subject {SPEC} --driver emulated-cuda" in done.stdout


def test_a_program_that_grows_is_told_of_its_illegal_call_and_its_leaks(tmp_path: Path) -> None:
    done = run_emulated("grow.py", tmp_path)
    assert "Warning: mr.deallocate() failed during Buffer destruction" in done.stderr
    assert re.search(r"illegal call: retain\(.*\) was refused with INVALID_VALUE  \[DRIVER-30\]", done.stderr)
    assert re.findall(r"leak: handle \d+ .*: (\d) reference", done.stderr) == ["2", "1"]
    assert re.search(r"allocated by .*grow\.py:12 in <module>", done.stderr)


def test_a_resource_of_the_hosts_memory_fails_an_assertion_of_its_own(tmp_path: Path) -> None:
    done = run_emulated("grow_host.py", tmp_path)
    assert "AssertionError: modify_allocation requires a device-located resource" in done.stderr
    assert "illegal call" not in done.stderr


def run_emulated(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    need()
    command = [sys.executable, "-m", "vmm_conformance.cli", "run", "--emulate", "cuda", "--"]
    done = subprocess.run([*command, str(DOCS / "found" / program)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1, done.stderr
    return done


def test_it_runs_over_nothing_that_cannot_see_its_calls() -> None:
    assert "use emulated-cuda" in unavailable(cuda_core, "host")
    if facts(DRIVER).missing or cuda_core.missing(DRIVER):
        assert "pip install" in cuda_core.missing(DRIVER) + facts(DRIVER).missing


def test_parameters_are_checked() -> None:
    subject: Any = resolve_subject(f"{SPEC},deallocate=immediate")
    assert subject.capabilities["deallocate"] == "immediate"
    with pytest.raises(SubjectNotFound, match="deallocate=late is unknown; accepted: stream, immediate"):
        resolve_subject(f"{SPEC},deallocate=late")
