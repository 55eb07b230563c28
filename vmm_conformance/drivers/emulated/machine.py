"""The ground of an emulated library: its driver, who calls, what is refused.

A library is a chain of classes, each in its module and each on top of the one before: machine, devices, memory,
streams, copies, graphs, library. Methods named as in the table of entry points are bodies: they take what the C
function takes and return a status, 0 if all went well. What is refused is raised as `DriverError`, and becomes the
status at the border to C. All rules about memory are the driver's; a library knows only what its C interface adds.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NoReturn

from vmm_conformance.contracts import Driver, DriverError, Status, Work
from vmm_conformance.drivers.emulated.codes import NOT_FOUND_TEXT, code_name, code_text
from vmm_conformance.drivers.emulated.entries import unemulated

SUCCESS: Final = 0
VERSIONS: Final = {"cuda": 13_000, "hip": 70_200_000}
"""What the libraries call themselves, each as its vendor counts."""


class Caller(threading.local):
    """What a library remembers of each thread: its device, its contexts, its last error, the work it has queued."""

    device = 0
    error = 0

    def __init__(self) -> None:
        self.contexts: list[int] = []
        self.works: list[Work] = []


class _Nobody:
    """Stands where the driver was."""

    def __getattr__(self, name: str) -> NoReturn:
        raise DriverError(Status.NOT_INITIALIZED, name, "no driver is behind the emulated library; start one first")


class Machine:
    """``missing`` counts the calls of functions that are not emulated, ``failures`` what bodies broke on."""

    def __init__(self, vendor: str) -> None:
        self.vendor = vendor
        self.hip = vendor == "hip"
        self.missing: Counter[str] = Counter()
        self.failures: list[BaseException] = []
        self._unemulated = unemulated(vendor)
        self._texts: dict[str, Any] = {}
        self._caller = Caller()
        self._lock = threading.RLock()
        self._forget_all()

    def _forget_all(self) -> None:
        """As if the process had just loaded the library."""
        self._driver: Driver = _Nobody()
        self._under: Driver = self._driver
        self._running = False
        self._caller = Caller()
        self.notice = None

    # -- refusals

    def refused(self, _: type[BaseException], error: BaseException, __: Any) -> int:
        """The status for what a body raised. Anything but a refusal is a fault of the body itself."""
        if isinstance(error, DriverError):
            status = int(error.status)
        else:
            self.failures.append(error)
            status = Status.UNKNOWN
        self._caller.error = status
        return status

    notice: Callable[[str, int, str], None] | None = None
    """Told of what the library refuses by itself, without its driver: call, status, detail."""

    def refuse(self, status: int, call: str, detail: str) -> NoReturn:
        """Answer ``status``."""
        if self.notice is not None:
            self.notice(call, status, detail)
        raise DriverError(status, call, detail)

    def invalid(self, call: str, detail: str = "a pointer that is needed is null, or flags are unknown") -> NoReturn:
        """Answer that an argument is no good."""
        self.refuse(Status.INVALID_VALUE, call, detail)

    def lacks(self, name: str) -> NoReturn:
        """Answer that ``name`` is not emulated, and remember that it was asked for."""
        self.missing[name] += 1
        raise DriverError(Status.NOT_SUPPORTED, name, "this function is not emulated")

    def missing_function(self, number: int) -> int:
        """A function without a body was called."""
        self.lacks(self._unemulated[number])

    # -- errors as text

    def last_error(self) -> int:
        """The last error of this thread, which is then forgotten."""
        error, self._caller.error = self._caller.error, SUCCESS
        return error

    def peek_error(self) -> int:
        """The last error of this thread."""
        return self._caller.error

    def error_name(self, code: int, out: Any) -> int:
        return self._tell(out, code_name(self.vendor, code))

    def error_text(self, code: int, out: Any) -> int:
        return self._tell(out, code_text(code))

    def error_name_now(self, code: int) -> int:
        return self._address_of(code_name(self.vendor, code) or NOT_FOUND_TEXT)

    def error_text_now(self, code: int) -> int:
        return self._address_of(code_text(code) or NOT_FOUND_TEXT)

    def _tell(self, out: Any, text: str) -> int:
        if not out:
            self.invalid("error text")
        out[0] = self._address_of(text) if text else 0
        return SUCCESS if text else Status.INVALID_VALUE

    def _address_of(self, text: str) -> int:
        """The address of ``text`` as C has it; it stays there."""
        kept = self._texts.get(text)
        if kept is None:
            kept = self._texts[text] = ctypes.create_string_buffer(text.encode())
        return ctypes.addressof(kept)

    # -- versions

    def init(self, flags: int) -> int:
        self._running = True
        return SUCCESS

    def version(self, out: Any) -> int:
        if not out:
            self.invalid("version")
        out[0] = VERSIONS[self.vendor]
        return SUCCESS


def put_bytes(address: int, data: bytes, room: int) -> None:
    """Store ``data`` at an address of this process that has room for so many bytes."""
    ctypes.memmove(address, data, min(len(data), room))
