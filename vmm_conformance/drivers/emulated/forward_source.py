"""The C of a forwarding library: every function of the vendor's goes on to the real one, and some are recorded.

What is recorded is a C function around a body in Python, as in `source`. All others are one jump through a table of
the real addresses: whatever their parameters are, they arrive as they were given.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from vmm_conformance.drivers.emulated.entries import BY_HAND, Entry, entries, unemulated
from vmm_conformance.drivers.emulated.source import HEAD, LOOK_UP, OWN_NAMES

RECORDED: Final = (
    "address_reserve", "address_free", "memory_create", "memory_release", "memory_map", "memory_unmap",
    "memory_set_access", "memory_retain", "memory_import", "memory_alloc", "memory_free",
)  # fmt: skip
"""The bodies that are recorded: virtual memory, and plain memory; and imports, which are only told from what is."""
_JUMP: Final = """
#if !defined(__x86_64__)
#error "calls are forwarded by a jump that is written for x86-64 alone"
#endif
#define JUMP(name, offset) __asm__(".text\\n.globl " #name "\\n.type " #name ",@function\\n" #name ":\\n" \
    "\\tjmp *vmm_real+" #offset "(%rip)\\n.size " #name ",.-" #name "\\n");
"""
_STATE: Final = """
static int vmm_state = 3;
static int vmm_absent(void) { return 801; }
"""
_GET: Final = """
int {name}(const char* name, void** out, int version, u64 flags{parameter})
{{
    void* mine = NULL;
    int status = ((int (*)(const char*, void**, int, u64{kind}))vmm_real[{index}])(name, out, version, flags{argument});
    if (!status && out && *out) vmm_look_up(name, &mine, version, NULL);
    if (mine) *out = mine;
    return status;
}}
"""
"""What is recorded has our address, whatever ``flags`` say of default streams: it uses none."""


@cache
def symbols(vendor: str) -> tuple[str, ...]:
    """Every function of the library, in the order of the table of real addresses."""
    own = [name for name in sorted(BY_HAND) if name.startswith("hip" if vendor == "hip" else "cu")]
    return (*(name.symbol for entry in entries(vendor) for name in entry.names), *unemulated(vendor), *own)


def recorded(vendor: str) -> tuple[Entry, ...]:
    """The entry points that are recorded."""
    return tuple(entry for entry in entries(vendor) if entry.body in RECORDED)


def module_name(vendor: str) -> str:
    """The library is a Python extension module too, under this name."""
    return f"_vmm_forwarding_{vendor}"


def signature(entry: Entry) -> str:
    """The C type of a pointer to the function."""
    return f"int (*)({', '.join(' '.join(parameter.split()[:-1]) for parameter in entry.parameters)})"


def declarations(vendor: str) -> str:
    """What cffi has to know. A body is told which of its functions was called."""
    lines = ["typedef unsigned long long u64;", "typedef uintptr_t ptr;", "extern int vmm_state;"]
    lines += [f"extern void* vmm_real[{len(symbols(vendor))}];", "int vmm_absent(void);"]
    lines += [f'extern "Python" int body_{e.body}(int which, {", ".join(e.parameters)});' for e in recorded(vendor)]
    return "\n".join(lines)


def c_source(vendor: str) -> str:
    """The C functions. cffi puts the bodies' declarations behind."""
    names = symbols(vendor)
    parts = [HEAD, _STATE, _JUMP, f"static void* vmm_real[{len(names)}] __attribute__((used));"]
    written = {name for name in names if name in BY_HAND}
    rows = [row for row in OWN_NAMES[vendor] if row[2] in names]
    prototypes = [_prototype(name) for name in sorted(written)]
    for entry in recorded(vendor):
        parts.append(f"static int body_{entry.body}(int which, {', '.join(entry.parameters)});")
        for name in entry.names:
            parts.append(_function(entry, name.symbol, names.index(name.symbol)))
            written.add(name.symbol)
            rows += [(name.asked, name.since, name.symbol), (name.symbol, 0, name.symbol)]
    parts += [f"JUMP({name}, {8 * index})" for index, name in enumerate(names) if name not in written]
    lines = [f'    {{"{asked}", {since}, (void*){symbol}}},' for asked, since, symbol in sorted(set(rows))]
    kind, look_up = LOOK_UP.strip().split("\n\n", 1)
    parts += [*prototypes, kind, "static const vmm_name vmm_names[] = {", *lines, "};", look_up]
    return "\n".join([*parts, *(_get(name, names.index(name)) for name in names if name in BY_HAND)])


def _function(entry: Entry, symbol: str, index: int) -> str:
    arguments = ", ".join(parameter.split()[-1] for parameter in entry.parameters)
    real = f"(({signature(entry)})vmm_real[{index}])({arguments})"
    body = f"body_{entry.body}({index}, {arguments})"
    return f"int {symbol}({', '.join(entry.parameters)}) {{ return vmm_state ? {real} : {body}; }}"


def _tells(name: str) -> bool:
    return name != "cuGetProcAddress"


def _prototype(name: str) -> str:
    return f"int {name}(const char*, void**, int, u64{', int*' if _tells(name) else ''});"


def _get(name: str, index: int) -> str:
    tells = _tells(name)
    return _GET.format(
        name=name, index=index, parameter=", int* found" if tells else "", kind=", int*" if tells else "",
        argument=", found" if tells else "",
    )  # fmt: skip
