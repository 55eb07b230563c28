"""What a probe found out about a driver, as text."""

from __future__ import annotations

from collections.abc import Sequence

from vmm_conformance.reporting.text import count, size, wrap
from vmm_conformance.running.probe import Device, Probe, Tried
from vmm_conformance.running.refusals import Refusal

WIDTH = 100
NAME = 30
"""Columns of the names on the left."""


def as_lines(found: Probe, refusals: Sequence[Refusal] = ()) -> list[str]:
    """The probe for a terminal, with what the driver was asked besides."""
    kind = "a device" if found.real else "no device"
    lines = [_row("driver", f"{found.driver} ({kind} behind it), {count(len(found.devices), 'device')}")]
    for device in found.devices:
        lines += _device(device)
    lines += ["", "capabilities, as declared and as tried"]
    for tried in found.capabilities:
        lines += _capability(tried)
    if refusals:
        lines += ["", "what it answers where documents name no code"]
    for refusal in refusals:
        text = f"{refusal.answer}: {refusal.detail}"
        lines += wrap(text, WIDTH, indent=f"  {refusal.question:<{NAME - 2}}", hang=" " * NAME)
    return [*lines, "", *_costs(found), "", _conclusion(found)]


def _device(device: Device) -> list[str]:
    peers = ", ".join(map(str, device.peers)) or "none"
    lines = [
        "",
        _row(f"device {device.number}", f"{size(device.free)} free of {size(device.total)}; peers: {peers}"),
    ]
    for space, (minimum, recommended) in device.granularity.items():
        alignment = size(device.alignment[space])
        text = f"granularity {size(minimum)}, recommended {size(recommended)}; alignment {alignment}"
        lines.append(_row(f"  memory space {space}", text))
    return lines


def _capability(tried: Tried) -> list[str]:
    measured = {True: "yes", False: "no", None: "?"}[tried.measured]
    verdict = measured if tried.kept else f"{measured}, DECLARED {'yes' if tried.declared else 'no'}"
    return wrap(f"{verdict}: {tried.detail}", WIDTH, indent=f"  {tried.name:<{NAME - 2}}", hang=" " * NAME)


def _costs(found: Probe) -> list[str]:
    costs = found.costs
    parts = f"map {costs.map_ms:.4f}, set_access {costs.set_access_ms:.4f}, unmap {costs.unmap_ms:.4f}"
    return [
        "costs on device 0, the inputs of an automatic copy threshold",
        _row("  map, set_access, unmap", f"{costs.remap_ms:.4f} ms ({parts})"),
        _row("  one small queued copy", f"{costs.copy_ms:.4f} ms"),
        _row("  copies", f"{costs.copy_bytes_per_second:,} bytes/s, with copies of {size(costs.copied)}"),
    ]


def _conclusion(found: Probe) -> str:
    wrong = [tried.name for tried in found.capabilities if not tried.kept]
    if not wrong:
        return "The driver does what it declares."
    return f"The driver does not do what it declares: {', '.join(wrong)}."


def _row(name: str, text: str) -> str:
    return f"{name:<{NAME}}{text}"
