"""The table of entry points: which body answers which C function of which vendor.

One line is ``body(C parameters) [-> type] | CUDA names | HIP names``. The parameters are those of both vendors,
spelled with the few types that matter to the calling convention: ``size_t`` also for addresses, ``size_t*`` for
whatever is written through a pointer of that size, ``ptr`` for memory that the body looks into by its address.
A name ending in ``@n`` is what ``cuGetProcAddress`` gives from that CUDA version on; a suffix ``_v2`` is not part
of the name that it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

VENDORS: Final = ("cuda", "hip")

_TABLE: Final = """
init(unsigned flags) | cuInit | hipInit
version(int* out) | cuDriverGetVersion | hipDriverGetVersion hipRuntimeGetVersion
device_count(int* out) | cuDeviceGetCount | hipGetDeviceCount
device_get(int* out, int ordinal) | cuDeviceGet | hipDeviceGet
device_name(ptr out, int length, int device) | cuDeviceGetName | hipDeviceGetName
device_bus_id(ptr out, int length, int device) | cuDeviceGetPCIBusId | hipDeviceGetPCIBusId
device_uuid(ptr out, int device) | cuDeviceGetUuid cuDeviceGetUuid_v2@11040 | hipDeviceGetUuid
device_attribute(int* out, int attribute, int device) | cuDeviceGetAttribute | hipDeviceGetAttribute
device_total(size_t* out, int device) | cuDeviceTotalMem_v2 | hipDeviceTotalMem
device_compute(int* major, int* minor, int device) | cuDeviceComputeCapability | hipDeviceComputeCapability
device_reaches(int* out, int device, int peer) | cuDeviceCanAccessPeer | hipDeviceCanAccessPeer
device_synchronize() | cuCtxSynchronize | hipDeviceSynchronize
device_reset() | | hipDeviceReset
device_set(int device) | | hipSetDevice
device_current(int* out) | cuCtxGetDevice | hipGetDevice hipCtxGetDevice
peer_enable(int peer, unsigned flags) | | hipDeviceEnablePeerAccess
peer_disable(int peer) | | hipDeviceDisablePeerAccess
context_peer_enable(size_t context, unsigned flags) | cuCtxEnablePeerAccess | hipCtxEnablePeerAccess
context_peer_disable(size_t context) | cuCtxDisablePeerAccess | hipCtxDisablePeerAccess
priority_range(int* least, int* greatest) | cuCtxGetStreamPriorityRange | hipDeviceGetStreamPriorityRange
last_error() | | hipGetLastError hipExtGetLastError
peek_error() | | hipPeekAtLastError
error_name(int code, size_t* out) | cuGetErrorName | hipDrvGetErrorName
error_text(int code, size_t* out) | cuGetErrorString | hipDrvGetErrorString
error_name_now(int code) -> ptr | | hipGetErrorName
error_text_now(int code) -> ptr | | hipGetErrorString

primary_retain(size_t* out, int device) | cuDevicePrimaryCtxRetain | hipDevicePrimaryCtxRetain
primary_release(int device) | cuDevicePrimaryCtxRelease_v2 | hipDevicePrimaryCtxRelease
primary_state(int device, unsigned* flags, int* active) | cuDevicePrimaryCtxGetState | hipDevicePrimaryCtxGetState
primary_flags(int device, unsigned flags) | cuDevicePrimaryCtxSetFlags_v2 | hipDevicePrimaryCtxSetFlags
primary_reset(int device) | cuDevicePrimaryCtxReset_v2 | hipDevicePrimaryCtxReset
context_create(size_t* out, unsigned flags, int device) | cuCtxCreate_v2 | hipCtxCreate
context_create_with(size_t* out, size_t affinity, int count, unsigned flags, int device) | cuCtxCreate_v3@11040 |
context_create_from(size_t* out, size_t parameters, unsigned flags, int device) | cuCtxCreate_v4@12050 |
context_destroy(size_t context) | cuCtxDestroy_v2 | hipCtxDestroy
context_push(size_t context) | cuCtxPushCurrent_v2 | hipCtxPushCurrent
context_pop(size_t* out) | cuCtxPopCurrent_v2 | hipCtxPopCurrent
context_set(size_t context) | cuCtxSetCurrent | hipCtxSetCurrent
context_get(size_t* out) | cuCtxGetCurrent | hipCtxGetCurrent
context_device(int* out, size_t context) | cuCtxGetDevice_v2@13000 |
context_synchronize(size_t context) | cuCtxSynchronize_v2@13000 |
context_flags(unsigned* out) | cuCtxGetFlags | hipCtxGetFlags
context_api(size_t context, unsigned* out) | cuCtxGetApiVersion | hipCtxGetApiVersion
context_id(size_t context, u64* out) | cuCtxGetId |

address_reserve(size_t* out, size_t size, size_t alignment, size_t hint, u64 flags) | cuMemAddressReserve | hipMemAddressReserve
address_free(size_t address, size_t size) | cuMemAddressFree | hipMemAddressFree
memory_create(size_t* out, size_t size, int* properties, u64 flags) | cuMemCreate | hipMemCreate
memory_release(size_t handle) | cuMemRelease | hipMemRelease
memory_map(size_t address, size_t size, size_t offset, size_t handle, u64 flags) | cuMemMap | hipMemMap
memory_unmap(size_t address, size_t size) | cuMemUnmap | hipMemUnmap
memory_set_access(size_t address, size_t size, int* descriptors, size_t count) | cuMemSetAccess | hipMemSetAccess
memory_get_access(u64* out, int* location, size_t address) | cuMemGetAccess | hipMemGetAccess
memory_granularity(size_t* out, int* properties, int option) | cuMemGetAllocationGranularity | hipMemGetAllocationGranularity
memory_retain(size_t* out, size_t address) | cuMemRetainAllocationHandle | hipMemRetainAllocationHandle
memory_properties(int* out, size_t handle) | cuMemGetAllocationPropertiesFromHandle | hipMemGetAllocationPropertiesFromHandle
memory_export(size_t out, size_t handle, int kind, u64 flags) | cuMemExportToShareableHandle | hipMemExportToShareableHandle
memory_import(size_t* out, size_t handle, int kind) | cuMemImportFromShareableHandle | hipMemImportFromShareableHandle
legacy_ipc_handle(ptr out, size_t address) | cuIpcGetMemHandle | hipIpcGetMemHandle

memory_info(size_t* free, size_t* total) | cuMemGetInfo_v2 | hipMemGetInfo
memory_alloc(size_t* out, size_t size) | cuMemAlloc_v2 | hipMalloc
memory_alloc_with(size_t* out, size_t size, unsigned flags) | | hipExtMallocWithFlags
memory_free(size_t address) | cuMemFree_v2 | hipFree
memory_alloc_queued(size_t* out, size_t size, size_t stream) | cuMemAllocAsync | hipMallocAsync
memory_free_queued(size_t address, size_t stream) | cuMemFreeAsync | hipFreeAsync
memory_range(size_t* base, size_t* size, size_t address) | cuMemGetAddressRange_v2 | hipMemGetAddressRange
pointer_attribute(ptr out, int attribute, size_t address) | cuPointerGetAttribute | hipPointerGetAttribute
pointer_attributes(unsigned count, int* attributes, size_t* outs, size_t address) | cuPointerGetAttributes | hipDrvPointerGetAttributes
pointer_facts(ptr out, size_t address) | | hipPointerGetAttributes
host_alloc(size_t* out, size_t size) | cuMemAllocHost_v2 | hipMallocHost hipMemAllocHost
host_alloc_with(size_t* out, size_t size, unsigned flags) | cuMemHostAlloc | hipHostMalloc hipHostAlloc
host_free(size_t address) | cuMemFreeHost | hipHostFree hipFreeHost
host_register(size_t address, size_t size, unsigned flags) | cuMemHostRegister_v2 | hipHostRegister
host_unregister(size_t address) | cuMemHostUnregister | hipHostUnregister
host_pointer(size_t* out, size_t address, unsigned flags) | cuMemHostGetDevicePointer_v2 | hipHostGetDevicePointer
host_flags(unsigned* out, size_t address) | cuMemHostGetFlags | hipHostGetFlags

copy_any(size_t target, size_t source, size_t size) | cuMemcpy |
copy_in(size_t target, size_t source, size_t size) | cuMemcpyHtoD_v2 | hipMemcpyHtoD
copy_out(size_t target, size_t source, size_t size) | cuMemcpyDtoH_v2 | hipMemcpyDtoH
copy_over(size_t target, size_t source, size_t size) | cuMemcpyDtoD_v2 | hipMemcpyDtoD
copy_kind(size_t target, size_t source, size_t size, int kind) | | hipMemcpy
copy_peer(size_t target, size_t target_context, size_t source, size_t source_context, size_t size) | cuMemcpyPeer |
copy_between(size_t target, int target_device, size_t source, int source_device, size_t size) | | hipMemcpyPeer
copy_any_queued(size_t target, size_t source, size_t size, size_t stream) | cuMemcpyAsync |
copy_in_queued(size_t target, size_t source, size_t size, size_t stream) | cuMemcpyHtoDAsync_v2 | hipMemcpyHtoDAsync
copy_out_queued(size_t target, size_t source, size_t size, size_t stream) | cuMemcpyDtoHAsync_v2 | hipMemcpyDtoHAsync
copy_over_queued(size_t target, size_t source, size_t size, size_t stream) | cuMemcpyDtoDAsync_v2 | hipMemcpyDtoDAsync
copy_kind_queued(size_t target, size_t source, size_t size, int kind, size_t stream) | | hipMemcpyAsync
copy_kind_waiting(size_t target, size_t source, size_t size, int kind, size_t stream) | | hipMemcpyWithStream
copy_peer_queued(size_t target, size_t to, size_t source, size_t from, size_t size, size_t stream) | cuMemcpyPeerAsync |
copy_between_queued(size_t target, int to, size_t source, int from, size_t size, size_t stream) | | hipMemcpyPeerAsync
fill_8(size_t target, unsigned value, size_t count) | cuMemsetD8_v2 | hipMemset hipMemsetD8
fill_16(size_t target, unsigned value, size_t count) | cuMemsetD16_v2 | hipMemsetD16
fill_32(size_t target, unsigned value, size_t count) | cuMemsetD32_v2 | hipMemsetD32
fill_8_queued(size_t target, unsigned value, size_t count, size_t stream) | cuMemsetD8Async | hipMemsetAsync hipMemsetD8Async
fill_16_queued(size_t target, unsigned value, size_t count, size_t stream) | cuMemsetD16Async | hipMemsetD16Async
fill_32_queued(size_t target, unsigned value, size_t count, size_t stream) | cuMemsetD32Async | hipMemsetD32Async

stream_create(size_t* out, unsigned flags) | cuStreamCreate | hipStreamCreateWithFlags
stream_create_plain(size_t* out) | | hipStreamCreate
stream_create_ranked(size_t* out, unsigned flags, int priority) | cuStreamCreateWithPriority | hipStreamCreateWithPriority
stream_destroy(size_t stream) | cuStreamDestroy_v2 | hipStreamDestroy
stream_synchronize(size_t stream) | cuStreamSynchronize | hipStreamSynchronize
stream_query(size_t stream) | cuStreamQuery | hipStreamQuery
stream_wait(size_t stream, size_t event, unsigned flags) | cuStreamWaitEvent | hipStreamWaitEvent
stream_flags(size_t stream, unsigned* out) | cuStreamGetFlags | hipStreamGetFlags
stream_priority(size_t stream, int* out) | cuStreamGetPriority | hipStreamGetPriority
stream_context(size_t stream, size_t* out) | cuStreamGetCtx |
stream_device(size_t stream, int* out) | cuStreamGetDevice | hipStreamGetDevice
stream_id(size_t stream, u64* out) | cuStreamGetId | hipStreamGetId
stream_begin(size_t stream, int mode) | cuStreamBeginCapture_v2 | hipStreamBeginCapture
stream_end(size_t stream, size_t* out) | cuStreamEndCapture | hipStreamEndCapture
stream_capturing(size_t stream, int* out) | cuStreamIsCapturing | hipStreamIsCapturing
capture_state(size_t stream, int* state, u64* id) | | hipStreamGetCaptureInfo
capture_info(size_t stream, int* state, u64* id, size_t* graph, size_t* needs, size_t* count) | cuStreamGetCaptureInfo_v2@11030 | hipStreamGetCaptureInfo_v2
capture_edges(size_t stream, int* state, u64* id, size_t* graph, size_t* needs, size_t* edges, size_t* count) | cuStreamGetCaptureInfo_v3@12030 |
capture_mode(int* mode) | cuThreadExchangeStreamCaptureMode | hipThreadExchangeStreamCaptureMode
host_function(size_t stream, size_t function, size_t data) | cuLaunchHostFunc | hipLaunchHostFunc
stream_callback(size_t stream, size_t function, size_t data, unsigned flags) | cuStreamAddCallback | hipStreamAddCallback

event_create(size_t* out, unsigned flags) | cuEventCreate | hipEventCreateWithFlags
event_create_plain(size_t* out) | | hipEventCreate
event_destroy(size_t event) | cuEventDestroy_v2 | hipEventDestroy
event_record(size_t event, size_t stream) | cuEventRecord | hipEventRecord
event_record_with(size_t event, size_t stream, unsigned flags) | cuEventRecordWithFlags | hipEventRecordWithFlags
event_synchronize(size_t event) | cuEventSynchronize | hipEventSynchronize
event_query(size_t event) | cuEventQuery | hipEventQuery
event_elapsed(float* out, size_t start, size_t end) | cuEventElapsedTime cuEventElapsedTime_v2@12080 | hipEventElapsedTime

graph_instantiate(size_t* out, size_t graph, u64 flags) | cuGraphInstantiateWithFlags cuGraphInstantiate@12000 | hipGraphInstantiateWithFlags
graph_instantiate_telling(size_t* out, size_t graph, size_t* node, ptr text, size_t size) | cuGraphInstantiate_v2@11000 | hipGraphInstantiate
graph_upload(size_t executable, size_t stream) | cuGraphUpload | hipGraphUpload
graph_launch(size_t executable, size_t stream) | cuGraphLaunch | hipGraphLaunch
graph_destroy(size_t graph) | cuGraphDestroy | hipGraphDestroy
graph_forget(size_t executable) | cuGraphExecDestroy | hipGraphExecDestroy
"""  # noqa: E501 - one entry point a line

_LINE: Final = re.compile(r"(\w+)\((.*?)\)(?: -> (\w+))? \|([^|]*)\|(.*)")
_SUFFIX: Final = re.compile(r"_v\d+$")


class Name(NamedTuple):
    """A C function: its symbol, the name that ``GetProcAddress`` knows it by, and from which version on."""

    symbol: str
    asked: str
    since: int


class Entry(NamedTuple):
    """One body: ``parameters`` in C, ``result`` the C type it returns, and the functions that it answers."""

    body: str
    parameters: tuple[str, ...]
    result: str
    names: tuple[Name, ...]


@cache
def entries(vendor: str) -> tuple[Entry, ...]:
    """The entry points of a vendor that have a body."""
    return tuple(entry for entry in _parse(VENDORS.index(vendor)) if entry.names)


@cache
def unemulated(vendor: str) -> tuple[str, ...]:
    """Functions that the vendor's library has, and that answer here only that they are not supported."""
    text = resources.files(__package__).joinpath(f"names_{vendor}.txt").read_text("utf-8")
    have = {name for entry in entries(vendor) for each in entry.names for name in (each.symbol, each.asked)}
    return tuple(name for name in text.split() if name not in have and name not in BY_HAND)


BY_HAND: Final = frozenset({"cuGetProcAddress", "cuGetProcAddress_v2", "hipGetProcAddress"})
"""Functions that are written in C, see `source`."""


def _parse(column: int) -> Iterator[Entry]:
    for line in filter(None, _TABLE.splitlines()):
        match = _LINE.fullmatch(line)
        assert match is not None, line
        body, parameters, result, *columns = match.groups()
        names = tuple(map(_name, columns[column].split()))
        yield Entry(body, tuple(p.strip() for p in parameters.split(",") if p.strip()), result or "int", names)


def _name(text: str) -> Name:
    symbol, _, since = text.partition("@")
    asked = _SUFFIX.sub("", symbol) if symbol.startswith("cu") else symbol
    return Name(symbol, asked, int(since or 0))
