"""The reference implementation: an allocator, a step executor and flag readers over the driver contract.

It is written to be read as a specification, and imports `vmm_conformance.contracts` alone. Where a line
is there because of an invariant, a comment or a docstring gives the invariant's id.

The memory layer, from the outside in:

- `reservation`: addresses, what is mapped at them, who owns it, and the remap;
- `raw_memory`: physical memory without an address;
- `descriptors`: what is asked for, and what is refused for what it says (pure functions).

The step executor, from the outside in:

- `step_executor`: the gates, and one `VaRanges` per device;
- `va_ranges`: one step on one device, in order;
- `layout`: which slots are mapped, which are small, and where each lies (pure functions);
- `mapping`: slots mapped into the reservation, with undo;
- `shadows`: fixed copies of small slots;
- `in_flight`: what has to be waited for before memory is taken away.
"""
