"""A program as a user of cuda.core writes it: a buffer is handed to a resource of the host's memory to be grown.

vmm-conformance run --emulate cuda -- docs/found/grow_host.py
"""

from cuda.core import Device, VirtualMemoryResource, VirtualMemoryResourceOptions

device = Device(0)
device.set_current()
stream = device.create_stream()
with VirtualMemoryResource(device).allocate(1 << 20, stream=stream) as buffer:
    VirtualMemoryResource(device, VirtualMemoryResourceOptions(location_type="host")).modify_allocation(buffer, 4 << 20)
