"""Which drivers over bindings can be tested here, and what is missing for the others."""

from __future__ import annotations

from typing import Any, Final

import pytest

from vmm_conformance.contracts import DriverOptions
from vmm_conformance.drivers.opening import facts, opener

EMULATED: Final = ("emulated-hip", "emulated-cuda")


def need(name: str) -> None:
    missing = facts(name).missing
    if missing:
        pytest.skip(missing)


def open_driver(name: str, **options: Any) -> Any:
    need(name)
    return opener(name)(DriverOptions(**options))


class FakeCalls:
    """A vendor's calls without a vendor: every call is answered from ``answers``, or with 0 or nothing.

    An answer that is an exception is raised; one that can be called is. ``asked`` lists all calls.
    """

    name = "fake"

    def __init__(self, **answers: Any) -> None:
        from vmm_conformance.contracts import DriverCapabilities

        self.asked: list[tuple[Any, ...]] = []
        self.answers: dict[str, Any] = {
            "device_count": 1,
            "device_name": "Fake GPU",
            "mem_info": (0, 0),
            "has_virtual_memory": True,
            "can_access_peer": False,
            "declared": DriverCapabilities(progress=False),
            "versions": {},
            "stream_query": True,
            "event_query": True,
            **answers,
        }
        self._numbers = iter(range(1, 1 << 30))

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.asked.append((name, *arguments))
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            if callable(answer):
                return answer(*arguments, **named)
            if answer is None and name in ("stream_create", "event_create", "reserve", "create", "alloc"):
                return next(self._numbers)
            return answer

        return call
