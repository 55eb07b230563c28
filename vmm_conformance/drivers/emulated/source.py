"""The C of an emulated library, written from the table of entry points.

Every function is a few instructions: it asks whether the interpreter is still there to answer, and calls its
body. The compiler thus takes care of argument types (the upper half of a register that holds an ``int`` is
undefined), and code that calls during or after the end of the interpreter gets a status instead of a crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vmm_conformance.drivers.emulated.entries import Entry, entries, unemulated

SONAMES: Final = {"cuda": "libcuda.so.1", "hip": "libamdhip64.so"}
"""What the vendors' libraries are called, and ours too: the dynamic loader finds a library by this name."""

HEAD: Final = """
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef unsigned long long u64;
typedef uintptr_t ptr;
"""

_STATE: Final = """
int vmm_state = 3;
#ifdef VMM_EMPTY
#define ASK(call) 0
#else
#define ASK(call) (vmm_state ? vmm_state : (call))
#endif
#define ASK_TEXT(call) (vmm_state ? (ptr)"" : (call))
"""

LOOK_UP: Final = """
typedef struct { const char* name; int since; void* function; } vmm_name;

/* The newest function of that name which is not newer than ``version``. */
static int vmm_look_up(const char* name, void** out, int version, int* found)
{
    size_t low = 0, high = sizeof(vmm_names) / sizeof(vmm_names[0]);
    int known = 0;
    if (!name || !out) return 1;
    *out = NULL;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(vmm_names[middle].name, name) < 0) low = middle + 1; else high = middle;
    }
    for (; low < sizeof(vmm_names) / sizeof(vmm_names[0]) && !strcmp(vmm_names[low].name, name); low++) {
        known = 1;
        if (vmm_names[low].since <= version) *out = vmm_names[low].function;
    }
    if (found) *found = *out ? 0 : known ? 2 : 1;
    return *out || found ? 0 : 500;
}
"""

_GET_PROC_ADDRESS: Final = {
    "cuda": """
int cuGetProcAddress_v2(const char* name, void** out, int version, u64 flags, int* found)
{
    (void)flags;
    return vmm_look_up(name, out, version, found);
}
int cuGetProcAddress(const char* name, void** out, int version, u64 flags)
{
    (void)flags;
    return vmm_look_up(name, out, version, NULL);
}
""",
    "hip": """
int hipGetProcAddress(const char* name, void** out, int version, u64 flags, int* found)
{
    (void)flags;
    return vmm_look_up(name, out, version, found);
}
""",
}
OWN_NAMES: Final = {
    "cuda": (("cuGetProcAddress", 0, "cuGetProcAddress"), ("cuGetProcAddress", 12000, "cuGetProcAddress_v2")),
    "hip": (("hipGetProcAddress", 0, "hipGetProcAddress"),),
}


def module_name(vendor: str) -> str:
    """The library is a Python extension module too, under this name."""
    return f"_vmm_emulated_{vendor}"


def declarations(vendor: str) -> str:
    """What cffi has to know: the state, and the bodies that are Python functions."""
    lines = ["typedef unsigned long long u64;", "typedef uintptr_t ptr;", "extern int vmm_state;"]
    lines += [
        f'extern "Python" {entry.result} body_{entry.body}({", ".join(entry.parameters) or "void"});'
        for entry in entries(vendor)
    ]
    lines.append('extern "Python" int body_missing(int number);')
    return "\n".join(lines)


def c_source(vendor: str) -> str:
    """The C functions. cffi puts the bodies' declarations in front."""
    parts = [HEAD, _prototypes(vendor), _STATE]
    parts += [text for entry in entries(vendor) for text in _functions(entry)]
    parts += [
        f"int {name}(void) {{ return ASK(body_missing({number})); }}" for number, name in enumerate(unemulated(vendor))
    ]
    if vendor == "cuda":
        own = "int cuGetProcAddress_v2(const char*, void**, int, u64, int*);\n"
        own += "int cuGetProcAddress(const char*, void**, int, u64);"
    else:
        own = "int hipGetProcAddress(const char*, void**, int, u64, int*);"
    return "\n".join([*parts, own, _names_table(vendor), _GET_PROC_ADDRESS[vendor]])


def _prototypes(vendor: str) -> str:
    """The bodies, which cffi defines as static functions behind this text."""
    lines = [
        f"static {entry.result} body_{entry.body}({', '.join(entry.parameters) or 'void'});"
        for entry in entries(vendor)
    ]
    return "\n".join([*lines, "static int body_missing(int number);"])


def _functions(entry: Entry) -> Iterator[str]:
    parameters = ", ".join(entry.parameters) or "void"
    arguments = ", ".join(parameter.split()[-1] for parameter in entry.parameters)
    ask = "ASK" if entry.result == "int" else "ASK_TEXT"
    for name in entry.names:
        yield f"{entry.result} {name.symbol}({parameters}) {{ return {ask}(body_{entry.body}({arguments})); }}"


def _names_table(vendor: str) -> str:
    rows = [(name.asked, name.since, name.symbol) for entry in entries(vendor) for name in entry.names]
    rows += [(name.symbol, 0, name.symbol) for entry in entries(vendor) for name in entry.names]
    rows += [(name, 0, name) for name in unemulated(vendor)]
    rows += OWN_NAMES[vendor]
    lines = [f'    {{"{asked}", {since}, (void*){symbol}}},' for asked, since, symbol in sorted(set(rows))]
    kind, look_up = LOOK_UP.strip().split("\n\n", 1)
    return "\n".join([kind, "static const vmm_name vmm_names[] = {", *lines, "};", look_up])
