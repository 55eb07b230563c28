"""An allocator that calls the CUDA driver by itself, through ctypes, and knows nothing of reports.

``python cuda_pool.py [early] [leaks]``: it frees before work on the memory is over, or forgets its handles.
"""

import ctypes
import json
import sys

FAULTS = sys.argv[1:]
cuda = ctypes.CDLL("libcuda.so.1")
word = ctypes.c_size_t


def call(name, *arguments):
    status = getattr(cuda, name)(*(word(given) if isinstance(given, int) else given for given in arguments))
    if status:
        raise MemoryError(name)


def get(name, *arguments):
    out = word()
    call(name, ctypes.byref(out), *arguments)
    return out.value


class Pool:
    def __init__(self, device, devices):
        self.device, self.live = device, {}

    def allocate(self, size, stream, space):
        if size <= 0:
            raise ValueError(f"{size} bytes; a size must be positive")
        committed = -(-size // GRANULE) * GRANULE
        address = get("cuMemAddressReserve", committed, 0, 0, 0)
        handle = get("cuMemCreate", committed, (ctypes.c_int * 8)(1, 0, 1, self.device), 0)
        call("cuMemMap", address, committed, 0, handle, 0)
        call("cuMemSetAccess", address, committed, (ctypes.c_int * 3)(1, self.device, 3), 1)
        self.live[address] = committed, handle
        return {"address": address, "size": size, "committed": committed}

    def deallocate(self, block, stream):
        if "early" not in FAULTS:
            call("cuStreamSynchronize", stream)
        self.give_back(block["address"])

    def close(self):
        call("cuCtxSynchronize")
        for address in list(self.live):
            self.give_back(address)

    def give_back(self, address):
        committed, handle = self.live.pop(address)
        call("cuMemUnmap", address, committed)
        if "leaks" not in FAULTS:
            call("cuMemRelease", handle)
        call("cuMemAddressFree", address, committed)


GRANULE = 2 << 20
WHO = {"name": "cuda-pool", "version": "1", "contracts": ["allocator"], "capabilities": {"grow": False},
       "calls": "reported", "device": {"granularity": GRANULE}}  # fmt: skip
pools = {}
call("cuInit", 0)
call("cuCtxSetCurrent", get("cuDevicePrimaryCtxRetain", 0))
while line := sys.stdin.readline():
    request = json.loads(line)
    do, number = request.pop("do"), request.pop("allocator", None)
    try:
        if do == "start":
            answer = WHO
        elif do == "stream_create":
            answer = get("cuStreamCreate", 0)
        elif do == "stream_destroy":
            answer = call("cuStreamDestroy_v2", request["stream"])
        elif do == "open":
            answer = pools.update({number: Pool(**request)})
        else:
            answer = getattr(pools[number], do)(**request)
        message = {"return": answer}
    except ValueError as error:
        message = {"refuse": "INVALID_ARGUMENT", "message": str(error)}
    except MemoryError as error:
        message = {"refuse": "OUT_OF_MEMORY", "message": str(error)}
    print(json.dumps(message), flush=True)
