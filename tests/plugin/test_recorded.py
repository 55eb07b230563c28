"""The fixtures for a project's own tests."""

from __future__ import annotations

import pytest

TESTS = '''
import pytest
from vmm_conformance.contracts import Access, DriverError, DriverOptions, Granularity, Range, Write


def test_host(vmm_host):
    assert vmm_host.name == "host"
    address = vmm_host.alloc(4096)
    vmm_host.free(address)


@pytest.mark.vmm(options=DriverOptions(devices=2, granularity=Granularity(8192, 16384)))
def test_options(vmm_host):
    assert vmm_host.device_count == 2
    assert vmm_host.granularity() == (8192, 16384)


def mapped(driver, size=4096):
    address, handle = driver.reserve(size), driver.create(size)
    driver.map(address, size, handle)
    driver.set_access(address, size, {0: Access.READ_WRITE})
    return address, handle


@pytest.mark.parametrize("waits", [True, False])
def test_code(vmm_recorded, waits):
    driver, caller = vmm_recorded.driver, vmm_recorded.caller
    address, handle = mapped(driver)
    stream = caller.stream_create()
    caller.launch(stream, writes=[Write(address, b"12345678")])
    if waits:
        driver.stream_synchronize(stream)
    driver.unmap(address, 4096)
    driver.release(handle)
    driver.address_free(address, 4096)
    found = {finding.invariant for finding in vmm_recorded.findings()}
    assert found == (set() if waits else {"ALLOCATOR-5"})
    if not waits:
        with pytest.raises(AssertionError, match="ALLOCATOR-5: unmap in no call takes away memory"):
            vmm_recorded.check()


def test_left_behind(vmm_recorded):
    mapped(vmm_recorded.driver)
    assert {finding.invariant for finding in vmm_recorded.finish().findings} == {"ALLOCATOR-8"}


@pytest.mark.vmm(contract="driver")
def test_the_driver_itself(vmm_recorded):
    driver = vmm_recorded.driver
    address, handle = mapped(driver)
    with pytest.raises(DriverError):
        driver.address_free(address, 4096)
    driver.unmap(address, 4096)
    driver.release(handle)
    driver.address_free(address, 4096)
    verdict = vmm_recorded.verdict()
    verdict.check()
    assert len(verdict.witnesses) > 3


@pytest.mark.vmm(invariants="ALLOCATOR-1")
def test_only_what_was_asked_for(vmm_recorded):
    driver = vmm_recorded.driver
    address, handle = mapped(driver)
    driver.launch(driver.stream_create(), reads=[Range(address, 8)])
    driver.unmap(address, 4096)
    vmm_recorded.check()


def test_allocator(vmm_recorded):
    from vmm_reference.subject import reference

    caller = vmm_recorded.caller
    stream = caller.stream_create()
    pool = vmm_recorded.allocator(reference)
    one, two = pool.allocate(5000, stream=stream), pool.allocate(100, stream=stream)
    caller.launch(stream, writes=[Write(one.address, b"12345678")])
    one = pool.grow(one, 50_000, stream=stream)
    caller.launch(stream, reads=[Range(one.address, 8)])
    pool.deallocate(one, stream=stream)
    pool.deallocate(two, stream=stream)
    pool.close()
    verdict = vmm_recorded.verdict()
    verdict.check()
    assert verdict.witnesses["ALLOCATOR-1"]
    assert verdict.witnesses["ALLOCATOR-6"]
    assert verdict.witnesses["ALLOCATOR-8"]


class Same:
    """Hands out the same block again and again."""

    def allocator(self, driver, device):
        from vmm_reference.subject import reference

        return Same.Pool(reference.allocator(driver, device))

    class Pool:
        def __init__(self, inner):
            self.inner, self.block = inner, None

        def allocate(self, size, *, stream, space=0):
            self.block = self.block or self.inner.allocate(size, stream=stream, space=space)
            return self.block

        def close(self):
            self.inner.close()


def test_bad_allocator(vmm_recorded):
    pool = vmm_recorded.allocator(Same())
    stream = vmm_recorded.caller.stream_create()
    pool.allocate(4096, stream=stream)
    pool.allocate(4096, stream=stream)
    pool.close()
    assert {finding.invariant for finding in vmm_recorded.findings()} == {"ALLOCATOR-1"}


def test_errors_come_through(vmm_recorded):
    from vmm_conformance.contracts import SubjectError
    from vmm_reference.subject import reference

    pool = vmm_recorded.allocator(reference)
    with pytest.raises(SubjectError):
        pool.allocate(-1, stream=vmm_recorded.caller.stream_create())
'''


def test_code_and_allocators_on_a_recorded_driver(own):
    own.makepyfile(TESTS)
    result = own.runpytest_inprocess("-W", "error", "--strict-markers")
    result.assert_outcomes(passed=10)


PROGRAMS = """
import json
from pathlib import Path

import pytest
from own import deaf, good

PROGRAM = {
    "version": 1,
    "contract": "flags",
    "configuration": {"revision": "flags"},
    "operations": [{"op": "read", "platform": "ROCM", "options": {"copy_threshold_bytes": "64"}}],
}


def test_text_and_objects(vmm_run):
    verdict = vmm_run(json.dumps(PROGRAM), good)
    assert verdict.findings == ()
    assert sum(verdict.witnesses.values())
    verdict.check()


def test_file_and_spec(vmm_run, tmp_path):
    path = tmp_path / "program.json"
    path.write_text(json.dumps(PROGRAM))
    with pytest.raises(AssertionError, match="FLAG-[0-9]+: .*; expected .*, found "):
        vmm_run(path, "own:deaf").check()


@pytest.mark.vmm(invariants=("FLAG-152",))
def test_only_what_was_asked_for(vmm_run):
    assert vmm_run(json.dumps(PROGRAM), deaf).findings == ()


def test_a_wrong_program(vmm_run):
    from vmm_conformance.programs.codec import ProgramError

    with pytest.raises(ProgramError, match="unknown contract"):
        vmm_run(json.dumps({**PROGRAM, "contract": "tea"}), good)
"""


def test_programs(own):
    own.makepyfile(PROGRAMS)
    own.runpytest_inprocess("-W", "error").assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("contract='tea'", "*marker vmm: unknown contract 'tea'; accepted: driver, allocator, *"),
        ("invariants='TEA'", "*marker vmm: no invariant begins with 'TEA'"),
        ("kind='x'", "*marker vmm takes contract=, invariants= and options=, not [[]'kind'[]]"),
        ("'x'", "*marker vmm takes contract=, invariants= and options=, not ('x',)"),
        (
            "contract='flags'",
            "*vmm_recorded judges the contracts allocator and driver; run programs for flags with vmm_run",
        ),
    ],
)
def test_a_marker_that_means_nothing(own, marker, message):
    own.makepyfile(f"import pytest\n@pytest.mark.vmm({marker})\ndef test_it(vmm_recorded): pass\n")
    result = own.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
