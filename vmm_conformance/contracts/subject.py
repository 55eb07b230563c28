"""What is put under test: a subject offers one factory per contract it implements.

A subject is any object (a module will do) with some of these attributes:

- ``name`` and ``version``: text for reports;
- ``capabilities``: a mapping, see `SUBJECT_CAPABILITIES`;
- ``missing(driver)``: what it lacks to be run over the driver of that name, and how to get it; empty if nothing;
- ``allocator(driver, device)``: contract ``allocator``;
- ``step_executor(driver, executable)``: contract ``skip-remap``;
- ``flags(revision)``: contract ``flags``;
- ``auto_threshold(device, slices, costs)``: contract ``auto-threshold``;
- ``reservation(driver, device)``: contract ``reservation``;
- ``vmm_allocator(driver, devices)``: contract ``vmm-allocator``;
- ``buffer_allocator(driver, executable)``: contract ``va-remap``; beside it, where there are such,
  ``command_consumer(executable, new_buffer)`` and ``parse_update_mode(text)``;
- ``driver(options)``: contract ``driver``; the subject is then itself a driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CONTRACTS: Final[Mapping[str, str]] = {
    "driver": "driver",
    "allocator": "allocator",
    "skip-remap": "step_executor",
    "flags": "flags",
    "auto-threshold": "auto_threshold",
    "reservation": "reservation",
    "vmm-allocator": "vmm_allocator",
    "va-remap": "buffer_allocator",
}
"""Contract name to the attribute that a subject offers it by."""

SUBJECT_CAPABILITIES: Final[Mapping[str, Any]] = {
    "grow": True,
    "shrink": False,
    "trim": False,
    "pause": (),
    "late_peers": False,
    "statistics": False,
    "captures": False,
    "waits": (),
    "address_space": 0,
    "paths": (),
    "deallocate": "stream",
    "segment": 0,
    "spaces": (0,),
    "traced": True,
    "revisions": ("env-auto", "env-bytes", "flags"),
    "auto_bounds": None,
    "auto_ties": "whole",
    "set_access_scope": "run",
    "unmap_scope": "run",
    "reserve_alignment": True,
    "second_alias": "ALREADY_EXISTS",
    "markers": "batched",
    "batch_limits": (64, 64 << 20),
    "host_allocator": False,
    "scheduled": True,
}
"""What a subject may declare, with the value that stands where it declares nothing.

Of an allocator: ``grow``, ``shrink``, ``trim`` and ``statistics``: it implements these calls. ``pause``: the ways in
which it pauses, ``backup`` (contents come back) and ``discard`` (they do not). ``late_peers``: other devices get
rights on its blocks by ``enable_peer``. ``deallocate``: ``stream`` if work submitted before may still use what is
freed, grown or closed on, ``immediate`` if the caller waits for it. ``segment``: it takes memory in pieces of at least
that many bytes, and may refuse a request when less than a piece is free (ALLOCATOR-9). ``captures``: it is told of
captures, and keeps what captured work uses. ``waits``: the calls that wait for queued work, ``deallocate`` for
instance, even when nothing is short; its caller must not hold work back over them (ALLOCATOR-21).
``address_space``: it never has more reserved on a device than so many times the device's memory (ALLOCATOR-22); 0 says
nothing. ``paths``: the ways in which its calls can go, ``CALL/WAY`` each, and ``taken`` counts them (ALLOCATOR-23).

``spaces``: memory spaces the allocator serves. ``traced``:
its driver calls go through the driver it was given. ``revisions``: flag grammars it implements.

``auto_bounds``: the `AutoBounds` that automatic choices of a copy threshold keep to. ``auto_ties``: ``whole``, or
``index`` where of equally large slices the first ones may be chosen alone (AUTO-175).

Of reservations: ``set_access_scope``: after a remap rights are granted once for each run of changed slices (``run``),
once over the whole mapping (``full``) or for each changed slice (``slice``) (REMAP-34). ``unmap_scope``: changed slices
that touch are unmapped in one call (``run``) or each in its own (``slice``) (REMAP-35). ``reserve_alignment``: an
alignment that is asked for is kept (RES-4).

Of a VMM allocator: ``second_alias``: the code with which it refuses a second alias of one address,
``ALREADY_EXISTS`` or ``FAILED_PRECONDITION`` (ALLOC-61). ``markers``: ``batched``, or ``per-operation`` where
every deferred operation has a marker of its own (ALLOC-74). ``batch_limits``: entries and bytes of a batch.
``host_allocator``: it can allocate in the host's memory space (ALLOC-78). ``scheduled``: its locks are made through
``threading`` while it is made, so that calls from several threads can be scheduled.
"""


def contracts_of(subject: object) -> tuple[str, ...]:
    """The contracts that ``subject`` offers a factory for."""
    return tuple(name for name, attribute in CONTRACTS.items() if callable(getattr(subject, attribute, None)))


def capability(subject: object, name: str) -> Any:
    """The value ``subject`` declares for a capability, or the default.

    Raises ``KeyError`` if no capability has that name.
    """
    declared: Mapping[str, Any] = getattr(subject, "capabilities", None) or {}
    return declared.get(name, SUBJECT_CAPABILITIES[name])
