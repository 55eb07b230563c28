"""Which devices of a machine a process sees, by the vendors' environment variables.

A variable numbers devices; each layer of them (AMD has two) narrows what the one below it left. A device is lent to a
process as an index into what its caller sees, so a caller that was given devices 2 and 3 lends those and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LAYERS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "cuda": (("CUDA_VISIBLE_DEVICES",),),
    "hip": (("ROCR_VISIBLE_DEVICES",), ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")),
}
"""By vendor, lowest layer first. Of the variables of one layer the first that says something counts."""


def narrowed(vendor: str, index: int, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable to set so that of the devices that ``environment`` shows only the ``index``-th, from 0, is left."""
    layer = LAYERS[vendor][-1]
    listed = next((words for variable in layer if (words := _words(environment.get(variable, "")))), None)
    return {layer[0]: listed[index] if listed else str(index)}


def shown(vendor: str, count: int, environment: Mapping[str, str]) -> tuple[int, ...]:
    """The devices that a process sees of a machine with ``count``, by their numbers there, in its own order.

    As drivers do, a list ends at the first entry that is no device; CUDA takes an empty one at its word.
    """
    devices = tuple(range(count))
    for layer in LAYERS[vendor]:
        said = [environment[variable] for variable in layer if variable in environment]
        said = said if vendor == "cuda" else [text for text in said if text]
        if said:
            devices = _chosen(devices, _words(said[0]))
    return devices


def own(vendor: str, environment: Mapping[str, str]) -> str:
    """What ``environment`` says of devices, as ``NAME=VALUE`` each; empty if nothing."""
    names = dict.fromkeys(name for layer in reversed(LAYERS[vendor]) for name in layer)
    return " ".join(f"{name}={environment[name]}" for name in names if name in environment)


def _chosen(devices: tuple[int, ...], words: list[str]) -> tuple[int, ...]:
    chosen: list[int] = []
    for word in words:
        if not word.isdecimal() or int(word) >= len(devices):
            break
        chosen.append(devices[int(word)])
    return tuple(chosen)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")] if text.strip() else []
