"""Which configurations are explored, and how much of the budget each gets."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from vmm_conformance.contracts import UNLIMITED
from vmm_conformance.programs.allocator import PARTS
from vmm_conformance.programs.auto_threshold import USUAL_COSTS, USUAL_DEVICE, Group
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.suites import Exploration, Suite


def _scenarios(contract: str) -> tuple[Scenario, ...]:
    name = f"vmm_suites.scenarios.{contract.replace('-', '_')}"
    if find_spec(name) is None:
        return ()
    found: tuple[Scenario, ...] = import_module(name).SCENARIOS
    return found


SUITES: tuple[Suite, ...] = (
    Suite(
        "skip-remap",
        (
            Exploration("anything", "every part of the configuration drawn", {}, share=6),
            Exploration("skip-on", "unchanged slots are left alone; no shadows",
                        {"skip_remap": True, "copy_threshold": 0, "platform": "ROCM", "vmm": True}, share=3),
            Exploration("shadows", "small slots are shadowed; both classes side by side",
                        {"skip_remap": True, "copy_threshold": 1024, "platform": "ROCM", "vmm": True}, share=5),
            Exploration("captured", "execution replays captured addresses",
                        {"capture": True, "platform": "ROCM", "vmm": True}, share=2),
            Exploration("streams", "steps on several streams",
                        {"streams": 3, "capture": False, "platform": "ROCM", "vmm": True}, share=3),
            Exploration("threads", "a second thread steps from inside the first's execution",
                        {"probe": True, "platform": "ROCM", "vmm": True}, share=1),
            Exploration("places", "two executables on two devices",
                        {"executables": 2, "devices": 2, "platform": "ROCM", "vmm": True}, share=1),
            Exploration("plain", "another platform, where everything is mapped anew each step",
                        {"platform": "CUDA", "vmm": True}, share=1),
            Exploration("compared", "the same program under every setting",
                        {"compare": True, "streams": 1, "devices": 1, "executables": 1, "platform": "ROCM"}, share=1),
            Exploration("series", "each program repeated in one life of the executors",
                        {"rounds": 5, "platform": "ROCM", "vmm": True}, share=1),
        ),
        _scenarios("skip-remap"),
    ),
    Suite(
        "allocator",
        (
            Exploration("anything", "every part of the configuration drawn", {}, share=4),
            Exploration("bare-driver", "a driver with none of the capabilities that may be declared",
                        {"unmap_spans": False, "access_spans": False, "partial_map": False}, share=1),
            Exploration("apart", "two devices that cannot reach each other",
                        {"devices": 2, "peers": False}, share=1),
            Exploration("short", "hardly any memory",
                        {"recommended": 4096, "capacity": 49152}, share=1),
            Exploration("parts", "the optional parts that the subject declares", {"parts": PARTS}, share=3),
            Exploration("captures", "work is captured while blocks come, go and change their size",
                        {"parts": ("captures", "shrink", "trim")}, share=2),
            Exploration("parts-apart", "the same on two devices, which may reach each other",
                        {"devices": 2, "parts": PARTS}, share=1),
            Exploration("series", "each program repeated in one life of the allocators", {"rounds": 5}, share=1),
            Exploration("held", "the caller holds work back over calls", {"parts": ("shrink", "trim", "holds")}),
        ),
        _scenarios("allocator"),
    ),
    Suite(
        "va-remap",
        (
            Exploration("anything", "every part of the configuration drawn", {}, share=5),
            Exploration("profiled", "addresses are watched, then some are fixed",
                        {"mode": "SKIP_PROFILED", "vmm": True}, share=4),
            Exploration("temps", "temporary buffers have fixed addresses", {"mode": "SKIP_TEMP", "vmm": True}, share=2),
            Exploration("consumer", "the subject's own consumer records and submits the commands",
                        {"consumer": True, "vmm": True}, share=3),
            Exploration("short", "hardly any memory", {"short": True, "vmm": True}, share=2),
            Exploration("threads", "a second thread begins a run in the middle of the first's",
                        {"probe": True, "vmm": True}, share=2),
            Exploration("places", "two executables on two devices",
                        {"executables": 2, "devices": 2, "vmm": True}, share=2),
            Exploration("fallback", "an allocator that cannot map", {"vmm": False}, share=1),
        ),
        _scenarios("va-remap"),
    ),
    Suite("flags", (Exploration("anything", "all three grammars"),), _scenarios("flags")),
    Suite(
        "auto-threshold",
        (
            Exploration("anything", "devices, costs and mixes of every kind", {}, share=5),
            Exploration("language-model", "hundreds of small slices beside a few large ones on a large device",
                        {"device": USUAL_DEVICE, "costs": USUAL_COSTS, "slices": (Group(4096, 100), Group(1 << 20, 4),
                         Group(64, 60), Group(2048, 40), Group(8 << 20, 2))}),
        ),
        _scenarios("auto-threshold"),
    ),
    Suite(
        "reservation",
        (
            Exploration("anything", "every part of the configuration drawn", {}, share=4),
            Exploration("spanning", "a driver that takes several mappings at once",
                        {"unmap_spans": True, "access_spans": True}, share=2),
            Exploration("bare-driver", "a driver with none of the capabilities that may be declared",
                        {"unmap_spans": False, "access_spans": False, "partial_map": False, "map_offset": False}),
            Exploration("parts", "a driver that maps parts of memory, from any place in it",
                        {"partial_map": True, "map_offset": True}),
            Exploration("apart", "two devices that cannot reach each other",
                        {"devices": 2, "peers": False}),
        ),
        _scenarios("reservation"),
    ),
    Suite(
        "vmm-allocator",
        (
            Exploration("anything", "every part of the configuration drawn", {}, share=6),
            Exploration("short", "hardly any budget, memory of one space exempt from reclaim",
                        {"recommended": 4096, "budget": 6 * 4096, "exempt": (1,), "devices": 1}, share=2),
            Exploration("roomy", "memory enough for everything",
                        {"recommended": 4096, "budget": UNLIMITED, "capacity": 1 << 20}, share=2),
            Exploration("devices", "two devices", {"devices": 2}, share=1),
            Exploration("series", "each program repeated in one life of the allocator", {"rounds": 5}, share=1),
            Exploration("large", "a few blocks fill a batch",
                        {"recommended": 1 << 20, "budget": UNLIMITED, "capacity": 1 << 34, "slots": 80}, share=1),
        ),
        _scenarios("vmm-allocator"),
    ),
    Suite("driver", (Exploration("anything", "every part of the configuration drawn"),), _scenarios("driver")),
)  # fmt: skip
"""What ``pytest --pyargs vmm_suites`` runs."""
