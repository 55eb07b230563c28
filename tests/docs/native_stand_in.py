"""Stands in for the binding of a native library that a porter would have: numbers in, status and value out.

It is the reference behind such an interface. Driver calls go through the driver that was handed in, and what that
raises comes through, as it does through pybind11 or Cython.
"""

from __future__ import annotations

import threading
from itertools import count

from vmm_conformance.contracts import (
    BufferCommand,
    BufferKind,
    BufferSpec,
    DeviceConfig,
    MappingDescriptor,
    Range,
    RemapMode,
    RemappingDescriptor,
    ScopedExecutable,
    SubjectError,
)
from vmm_reference.subject import Reference

_reference, _numbers, _objects, _local = Reference(), count(1), {}, threading.local()


class _Aborted(Exception):
    """The callback said that it failed."""


def _keep(thing):
    number = next(_numbers)
    _objects[number] = thing
    return number


def _answers(function):
    """Let a function answer ``(status, message, value)``."""

    def answered(*arguments):
        try:
            return "OK", "", function(*arguments)
        except SubjectError as error:
            return error.code.value, error.message, None
        except _Aborted:
            return "ABORTED", "the callback failed", None

    return answered


# -- reservations


def layer_open(driver, device):
    return _keep(_reference.reservation(driver, device))


@_answers
def memory_create(layer, size, space):
    return _keep(_objects[layer].allocate(size, space))


@_answers
def address_of(thing):
    return tuple(_objects[thing].address)


@_answers
def reserve(layer, size, alignment):
    return _keep(_objects[layer].reserve(size, alignment))


@_answers
def map_slices(reservation, slices):
    made = [MappingDescriptor(*numbers, _objects.get(memory)) for *numbers, memory in slices]
    return _keep(_objects[reservation].map_to(made))


@_answers
def remap(mapping, slices):
    made = [RemappingDescriptor(*numbers, _objects.get(memory), changed) for *numbers, memory, changed in slices]
    return _keep(_objects[mapping].remap(made))


def is_null(mapping):
    return _objects[mapping].is_null


def move(mapping):
    return _keep(_objects[mapping].move())


@_answers
def assign(mapping, other):
    _objects[mapping].assign(_objects[other])


def release(thing):
    _objects[thing].release()


def close(thing):
    _objects[thing].close()


# -- the VMM allocator


@_answers
def allocator_open(driver, devices):
    return _keep(_reference.vmm_allocator(driver, [DeviceConfig(*device) for device in devices]))


@_answers
def allocate(allocator, ordinal, size, retry, space):
    return tuple(_objects[allocator].allocate(ordinal, size, retry=retry, space=space))


@_answers
def allocate_mapped(allocator, ordinal, alloc_size, reservation, offset, map_size, retry, space):
    return tuple(
        _objects[allocator].allocate_mapped(
            ordinal, alloc_size, reservation=_objects.get(reservation), offset=offset, map_size=map_size, retry=retry,
            space=space,
        )
    )  # fmt: skip


@_answers
def deallocate(allocator, ordinal, address, size):
    _objects[allocator].deallocate(ordinal, Range(address, size))


@_answers
def map_alias(allocator, ordinal, address, source_size, reservation, offset, size):
    _objects[allocator].map(ordinal, Range(address, source_size), _objects.get(reservation), offset, size)


@_answers
def unmap_alias(allocator, ordinal, reservation, offset, size):
    _objects[allocator].unmap(ordinal, _objects.get(reservation), offset, size)


@_answers
def synchronize(allocator, ordinal):
    _objects[allocator].synchronize_pending_operations(ordinal)


def raw_allocation(allocator, ordinal, address, size):
    return _objects[allocator].raw_allocation(ordinal, Range(address, size))


def reservation_of(allocator, ordinal, address, size):
    return _objects[allocator].reservation_of(ordinal, Range(address, size))


def granularity(allocator, ordinal):
    return _objects[allocator].granularity(ordinal)


@_answers
def stream(allocator, ordinal):
    return _objects[allocator].stream(ordinal)


@_answers
def address_reserve(allocator, ordinal, size):
    return _keep(_objects[allocator].create_reservation(ordinal, size))


def range_of(reservation):
    return tuple(_objects[reservation].range)


def tag_push(allocator, multi_device):
    entered = _objects[allocator].device_tag(multi_device)
    entered.__enter__()
    _local.tags = [*getattr(_local, "tags", []), entered]


def tag_pop(allocator):
    _local.tags.pop().__exit__(None, None, None)


# -- scopes


def buffers_open(driver, mode, multi_device, buffers, commands):
    return _keep(
        _reference.buffer_allocator(
            driver,
            ScopedExecutable(
                tuple(BufferSpec(size, BufferKind(kind), *rest) for size, kind, *rest in buffers),
                tuple(BufferCommand(*command) for command in commands), RemapMode(mode), multi_device,
            ),
        )
    )  # fmt: skip


@_answers
def scope_open(buffers, device, stream, allocator):
    return _keep(_objects[buffers].create_scope(device, stream, allocator))


def scope_remaps(scope):
    return _objects[scope].va_remap_enabled


@_answers
def scope_generate(scope, arguments):
    return [tuple(entry) for entry in _objects[scope].generate([Range(*argument) for argument in arguments])]


@_answers
def scope_execute(scope, table, callback):
    def call(final, persistent):
        if not callback([tuple(entry) for entry in final], persistent):
            raise _Aborted

    _objects[scope].execute([Range(*entry) for entry in table], call)


@_answers
def scope_teardown(scope, live):
    _objects[scope].teardown(set(live))


def scope_drop(scope):
    _objects[scope].drop()
