"""What the tests of the emulated libraries need, and what they say where it is missing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest

from vmm_conformance.contracts import DriverOptions, Granularity
from vmm_conformance.drivers.emulated import EmulationUnavailable, Library, bring_in
from vmm_conformance.drivers.host import HostDriver

G = 64 << 10
"""The granule of the drivers in these tests, in bytes."""


def need_library(vendor: str) -> Library:
    try:
        return bring_in(vendor)
    except EmulationUnavailable as error:
        pytest.skip(str(error))


def need_module(name: str, package: str) -> None:
    if find_spec(name.partition(".")[0]) is None or find_spec(name) is None:
        pytest.skip(f"{name} is not installed; pip install {package}")


class World:
    """A library with a fresh driver behind it, and its functions as a C program sees them."""

    def __init__(self, vendor: str, library: Library, driver: HostDriver) -> None:
        self.vendor = vendor
        self.library = library
        self.driver = driver
        self.c = ctypes.CDLL(library.path.name)

    def call(self, cuda: str, *arguments: object, hip: str = "") -> int:
        """Call a function by CUDA's name, or HIP's for the same. Integers go as 64 bits."""
        name = cuda if self.vendor == "cuda" else hip or cuda.replace("cu", "hip", 1)
        words = [ctypes.c_size_t(a) if isinstance(a, int) else a for a in arguments]
        return int(getattr(self.c, name)(*words))

    def get(self, cuda: str, *arguments: object, hip: str = "") -> int:
        """Call a function whose first argument is an output, and must succeed."""
        out = ctypes.c_size_t()
        assert self.call(cuda, ctypes.byref(out), *arguments, hip=hip) == 0
        return out.value

    def properties(
        self, device: int = 0, kind: int = 1, location: int = 1, handles: int = 0
    ) -> ctypes.Array[ctypes.c_int]:
        return (ctypes.c_int * 8)(kind, handles, location, device)

    def rights(self, *pairs: tuple[int, int]) -> ctypes.Array[ctypes.c_int]:
        return (ctypes.c_int * (3 * len(pairs)))(*(n for device, flags in pairs for n in (1, device, flags)))

    def mapped(self, size: int = G, flags: int = 3) -> tuple[int, int]:
        """A mapping with rights: its address and handle."""
        address = self.get("cuMemAddressReserve", size, 0, 0, 0)
        handle = self.get("cuMemCreate", size, self.properties(), 0)
        assert self.call("cuMemMap", address, size, 0, handle, 0) == 0
        assert self.call("cuMemSetAccess", address, size, self.rights((0, flags)), 1) == 0
        return address, handle

    def write(self, address: int, data: bytes) -> int:
        return self.call("cuMemcpyHtoD_v2", address, ctypes.c_char_p(data), len(data), hip="hipMemcpyHtoD")

    def read(self, address: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        assert self.call("cuMemcpyDtoH_v2", data, address, size, hip="hipMemcpyDtoH") == 0
        return data.raw


MakeWorld = Callable[..., World]


@pytest.fixture
def make_world() -> Iterator[MakeWorld]:
    """Worlds with a driver as the options say. The context of CUDA's device 0 is current."""
    made: list[World] = []

    def make(vendor: str, **options: object) -> World:
        library = need_library(vendor)
        chosen = {"granularity": Granularity(G, 2 * G), "capacity": 64 * G, **options}
        driver = HostDriver(DriverOptions(**chosen))  # type: ignore[arg-type]
        library.start(driver)
        made.append(World(vendor, library, driver))
        if vendor == "cuda":
            assert made[-1].call("cuInit", 0) == 0
            assert made[-1].call("cuCtxSetCurrent", made[-1].get("cuDevicePrimaryCtxRetain", 0)) == 0
        return made[-1]

    yield make
    for world in made:
        assert world.library.failures == []
        world.library.stop()
        world.driver.close()


@pytest.fixture(params=["cuda", "hip"])
def world(request: pytest.FixtureRequest, make_world: MakeWorld) -> World:
    return make_world(request.param)
