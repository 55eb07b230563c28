"""Which configurations are explored, and how much of the budget each gets."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

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
        ),
        _scenarios("allocator"),
    ),
    Suite("flags", (Exploration("anything", "all three grammars"),), _scenarios("flags")),
    Suite("driver", (Exploration("anything", "every part of the configuration drawn"),), _scenarios("driver")),
)  # fmt: skip
"""What ``pytest --pyargs vmm_suites`` runs."""
