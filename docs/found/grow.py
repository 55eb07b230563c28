"""A program as a user of cuda.core writes it: a buffer grows and is closed.

vmm-conformance run --emulate cuda -- docs/found/grow.py
"""

from cuda.core import Device, VirtualMemoryResource

device = Device(0)
device.set_current()
stream = device.create_stream()
resource = VirtualMemoryResource(device)
buffer = resource.allocate(1 << 20, stream=stream)
buffer = resource.modify_allocation(buffer, 4 << 20)
buffer.close(stream)
