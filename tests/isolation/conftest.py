"""Subjects of their own for runs in child processes, which find them by a module in a folder."""

from __future__ import annotations

import pytest

from vmm_conformance.running.session import end_children

OWN = '''
import ctypes

from vmm_conformance.contracts import Settings
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.contracts import DriverError, Status
from vmm_reference.subject import reference


class Deaf:
    """Reads nothing at all: what was asked for is never in force."""

    name, version = "deaf", "1"

    def flags(self, revision):
        return self

    def read(self, platform, environment, options):
        return Settings(False, 0)


class Both(Deaf):
    """Deaf, and a wild pointer at what is not ROCM."""

    name = "both"

    def read(self, platform, environment, options):
        if platform == "CUDA":
            ctypes.string_at(0)
        return super().read(platform, environment, options)


class Sticky(HostDriver):
    """After a device fault every later driver of the process is dead."""

    faulted = False

    def __init__(self, options):
        super().__init__(options)
        self.dead = Sticky.faulted

    def listen(self, listener):
        def told(work):
            Sticky.faulted = Sticky.faulted or work.fault is not None
            listener(work)

        super().listen(told if listener else None)

    def device_synchronize(self, device):
        if self.dead:
            raise DriverError(Status.ILLEGAL_ADDRESS, "device_synchronize", "an earlier fault")
        super().device_synchronize(device)

    def reserve(self, *args, **kwargs):
        if self.dead:
            raise DriverError(Status.ILLEGAL_ADDRESS, "reserve", "an earlier fault")
        return super().reserve(*args, **kwargs)


class Drivers:
    name, version = "sticky", "1"

    def driver(self, options):
        return Sticky(options)




class Wild:
    """An allocator that follows a wild pointer when it is to take something back."""

    name, version = "wild", "1"

    def allocator(self, driver, device):
        made = reference.allocator(driver, device)
        made.deallocate = lambda block, *, stream: ctypes.string_at(0)
        return made


deaf, both, sticky, wild = Deaf(), Both(), Drivers(), Wild()
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with the module ``isolated_own``, which this process and its children find."""
    (tmp_path / "isolated_own.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    end_children()  # one of an earlier test does not look into this folder
    return tmp_path


@pytest.fixture(autouse=True)
def no_child_stays():
    """What a test started ends with it."""
    yield
    end_children()
