"""What handles tell, and memory that goes out as a descriptor and comes back as a handle. See `running.driver_courses`.

Two handles for one memory are nothing that a replayed state could follow, so these calls are not recorded one by one.
A note has the facts: what each is about, what was asked, which answers are right, and the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from vmm_conformance.contracts import Access, DriverError, status_name
from vmm_conformance.contracts.sharing import POSIX_FD, HandleProperties, SharingDriver
from vmm_conformance.drivers.opening import EMULATED
from vmm_conformance.programs import driver_operations as ops
from vmm_conformance.running.driver_actions import Actions, free_granules
from vmm_conformance.running.driver_children import Unreachable, elsewhere

SUCCESS: Final = "success"
REFUSED: Final = "any error"
INVALID: Final = "INVALID_VALUE"
_UNKNOWN_OPTIONS: Final = (2, 3, 255)
_WIN32: Final = 2
_TOKEN: Final = 8
OPEN: Final = "/proc/self/fd"
"""Where the system lists the descriptors of this process."""


class Fact(NamedTuple):
    """``about`` names the rule: option, properties, legacy, export, apart, import, imported or outlives."""

    about: str
    what: str
    wanted: str
    got: str


class Scene:
    """Memory of one granule that is handed around, whatever else is needed for that, and the facts so far."""

    def __init__(self, actions: Actions, device: int) -> None:
        self.actions = actions
        self.driver: Any = actions.recorder.driver
        self.device = device
        self.granule = actions.ranges.granule
        self.about = ""
        self.facts: list[Fact] = []
        self._reserved: list[int] = []
        self._mapped: list[int] = []
        self._handles: list[int] = []
        self._descriptors: list[int] = []

    # -- facts

    def tell(self, what: str, wanted: Any, got: Any) -> None:
        """One fact."""
        self.facts.append(Fact(self.about, what, str(wanted), str(got)))

    def refusal(self, what: str, wanted: str, call: Callable[..., Any], *args: Any, **named: Any) -> None:
        """A call that has to be refused."""
        try:
            got = call(*args, **named)
        except DriverError as error:
            self.tell(what, wanted, status_name(error.status))
        except NotImplementedError:
            return  # not to be asked of this driver
        else:
            self.tell(what, wanted, f"{SUCCESS}, {got!r}")

    # -- what it is made of

    def create(self) -> int:
        """Memory that may be shared."""
        return self.owned(self.driver.create_shareable(self.granule, device=self.device))

    def owned(self, handle: int) -> int:
        """A handle to be released in the end."""
        self._handles.append(handle)
        return handle

    def place(self, handle: int) -> int:
        """Where the memory of ``handle`` can be used."""
        address: int = self.driver.reserve(self.granule)
        self._reserved.append(address)
        self.driver.map(address, self.granule, handle)
        self._mapped.append(address)
        self.driver.set_access(address, self.granule, {self.device: Access.READ_WRITE})
        return address

    def export(self, handle: int, **named: int) -> int:
        """A descriptor to be closed in the end, unless it was open before: then it is somebody else's."""
        before = open_descriptors()
        descriptor: int = self.driver.export_handle(handle, **named)
        if descriptor in open_descriptors() - before:
            self._descriptors.append(descriptor)
        return descriptor

    def bring_in(self, descriptor: int) -> int:
        """The handle that a descriptor stands for."""
        return self.owned(self.driver.import_handle(descriptor))

    def token(self, address: int) -> str:
        """Write something new."""
        token = self.actions.tokens.take()
        self.driver.write(address, token)
        return token.hex()

    def read(self, address: int) -> str:
        """What is there."""
        data: bytes = self.driver.read(address, _TOKEN).data[0]
        return data.hex()

    def room(self) -> int:
        """Free bytes of the device."""
        free: int = self.driver.mem_info(self.device).free
        return free

    # -- what is given back

    def drop(self, address: int, handle: int) -> None:
        """End a mapping, and release its handle."""
        self.unmap(address)
        self.free(address)
        self.release(handle)

    def unmap(self, address: int) -> None:
        """End a mapping."""
        self._mapped.remove(address)
        self.driver.unmap(address, self.granule)

    def free(self, address: int) -> None:
        """Free a reservation."""
        self._reserved.remove(address)
        self.driver.address_free(address, self.granule)

    def release(self, handle: int) -> None:
        """Release a handle."""
        self._handles.remove(handle)
        self.driver.release(handle)

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        if descriptor in self._descriptors:
            self._descriptors.remove(descriptor)
            os.close(descriptor)

    def clear(self) -> None:
        """Give back all that is left, as far as the driver takes it."""
        for give_back, left in (
            (self.unmap, self._mapped), (self.free, self._reserved), (self.release, self._handles),
            (self.close, self._descriptors),
        ):  # fmt: skip
            for number in list(left):
                with suppress(Exception):
                    give_back(number)


def open_descriptors() -> set[int]:
    """This process's, without the one by which they are listed; none where the system does not tell."""
    listed = os.listdir(OPEN) if os.path.isdir(OPEN) else []
    return {int(name) for name in listed if os.path.lexists(f"{OPEN}/{name}")}


# -- scenes


def _facts(scene: Scene) -> None:
    driver, device = scene.driver, scene.device
    scene.about = "option"
    known = [driver.granularity_option(option, device=device) for option in (0, 1)]
    scene.tell("the granularities by number", list(driver.granularity(device)), known)
    for option in _UNKNOWN_OPTIONS:
        scene.refusal(f"granularity_option({option})", INVALID, driver.granularity_option, option, device=device)
    scene.about = "properties"
    plain = scene.owned(driver.create(scene.granule, device=device))
    scene.tell("the properties of a handle", HandleProperties(1, 1, device, 0), driver.properties(plain))
    if driver.capabilities.sharing:
        wanted = HandleProperties(1, 1, device, POSIX_FD)
        scene.tell("the properties of a shareable handle", wanted, driver.properties(scene.create()))
    scene.about = "legacy"
    scene.refusal("legacy_ipc_handle of mapped memory", REFUSED, driver.legacy_ipc_handle, scene.place(plain))


def _export(scene: Scene) -> None:
    driver = scene.driver
    scene.about = "export"
    handle = scene.create()
    for kind, flags in ((_WIN32, 0), (0, 0), (POSIX_FD, 1)):
        what = f"export_handle of type {kind} with flags {flags}"
        scene.refusal(what, INVALID, scene.export, handle, kind=kind, flags=flags)
    plain = scene.owned(driver.create(scene.granule, device=scene.device))
    scene.refusal("export_handle of what was not created for it", INVALID, scene.export, plain)
    scene.about = "apart"
    first, second = scene.export(handle), scene.export(handle)
    scene.tell("two exports are two descriptors", True, first != second)
    if first != second:
        scene.close(first)
        scene.bring_in(second)
        scene.tell("import of the second behind the close of the first", SUCCESS, SUCCESS)


def _import(scene: Scene) -> None:
    scene.about = "import"
    handle = scene.create()
    here = scene.place(handle)
    token = scene.token(here)
    descriptor = scene.export(handle)
    imported = scene.bring_in(descriptor)
    there = scene.place(imported)
    scene.tell("what was written before, read through the import", token, scene.read(there))
    scene.tell("what is written through the import, read through the first", scene.token(there), scene.read(here))
    scene.about = "imported"
    wanted = scene.driver.properties(handle)
    scene.tell("the properties of the imported handle", wanted, scene.driver.properties(imported))


def _outlive(scene: Scene) -> None:
    scene.about = "outlives"
    room = scene.room()
    handle = scene.create()
    first = scene.place(handle)
    token = scene.token(first)
    descriptor = scene.export(handle)
    imported = scene.bring_in(descriptor)
    scene.close(descriptor)
    second = scene.place(imported)
    scene.tell("imported memory whose descriptor was closed before map", token, scene.read(second))
    scene.drop(first, handle)
    scene.tell("imported memory whose exporter has released it", token, scene.read(second))
    descriptor = scene.export(imported)
    scene.drop(second, imported)
    last = scene.bring_in(descriptor)
    third = scene.place(last)
    scene.tell("memory that was but an open descriptor", token, scene.read(third))
    scene.close(descriptor)
    scene.drop(third, last)
    if not scene.actions.real:
        scene.tell("free memory when all was given back", room, scene.room())


def _visited(depth: int) -> Callable[[Scene], None]:
    def scene_of(scene: Scene) -> None:
        scene.about = "import"
        handle = scene.create()
        here = scene.place(handle)
        token, back = scene.token(here), scene.actions.tokens.take()
        descriptor = scene.export(handle)
        numbers = (descriptor, scene.granule, scene.device, int.from_bytes(back, "little"))
        reopen = scene.actions.reopen
        seen = elsewhere(scene.driver.name, reopen, "visit", *numbers, depth=depth, descriptors=[descriptor])
        who = "a child process" if depth < 2 else "the child of a child process"
        scene.tell(f"what was written before, read by {who}", token, seen)
        scene.tell(f"what {who} wrote, read here", back.hex(), scene.read(here))

    return scene_of


_SCENES: Final[dict[str, Callable[[Scene], None]]] = {
    "facts": _facts,
    "export": _export,
    "import": _import,
    "outlive": _outlive,
    "child": _visited(1),
    "grandchild": _visited(2),
}


def share(actions: Actions, op: ops.Share) -> int | None:
    """Note ``share``: the twist, and the facts. None where the driver shares nothing."""
    driver = actions.recorder.driver
    device = op.device % actions.ranges.devices
    if not isinstance(driver, SharingDriver) or not (op.twist == "facts" or driver.capabilities.sharing):
        return None
    if free_granules(actions, device) < 2:
        return None
    scene = Scene(actions, device)
    try:
        _SCENES[op.twist](scene)
    except Unreachable:
        return None
    except Exception as error:  # whatever a driver does is a verdict, never a traceback of ours
        scene.tell("a call that has to succeed", SUCCESS, f"{type(error).__name__}: {error}")
    finally:
        scene.clear()
    actions.recorder.note("share", twist=op.twist, facts=tuple(map(tuple, scene.facts)))
    actions.probes.memory()
    return 0


def leave(actions: Actions, op: ops.Leave) -> int | None:
    """Note ``left``: what was free before a process that just ended, and behind it. None if there can be none."""
    driver = actions.recorder.driver
    device = op.device % actions.ranges.devices
    if driver.name in EMULATED or not free_granules(actions, device):
        return None
    try:
        before, behind = (elsewhere(driver.name, actions.reopen, task, device) for task in ("leave", "look"))
    except Unreachable:
        return None
    actions.recorder.note("left", device=device, before=before, behind=behind)
    return 0
