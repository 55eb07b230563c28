"""The summary: one line an area, details only for what does not pass."""

from __future__ import annotations

from types import SimpleNamespace

from handmade import ITEMS, THING, Item, failure, report, result

from vmm_conformance.reporting.terminal import summary

BROKEN = result(
    witnesses={"ALLOCATOR-1": 4, "ALLOCATOR-2": 1},
    failures=[failure("ALLOCATOR-1"), failure("ALLOCATOR-2"), failure("ALLOCATOR-3")],
    untested={"FLAG-147": "no trace"},
)


def test_conformant(snapshot):
    snapshot("summary_conformant", "\n".join(summary(report())))


def test_broken(snapshot):
    snapshot("summary_broken", "\n".join(summary(report(BROKEN, result(ITEMS[1].id)), directory="report")))


def test_partial_with_two_subjects(snapshot):
    other = SimpleNamespace(name="other", version="", allocator=THING.allocator, flags=lambda revision: None)
    items = (*ITEMS, Item("allocator/explore/a[other]", "other"))
    stopped = result(state="crash", witnesses={"ALLOCATOR-1": 1}, executed=4)
    made = report(stopped, items=items, subjects={"thing": THING, "other": other}, seed=3)
    snapshot("summary_partial", "\n".join(summary(made)))


def test_it_says_which_device_a_worker_had():
    lines = summary(report(devices={"gw0": "CUDA_VISIBLE_DEVICES=2", "gw1": "CUDA_VISIBLE_DEVICES=3"}))
    assert lines[-4:] == ["", "devices", "  - gw0 had CUDA_VISIBLE_DEVICES=2", "  - gw1 had CUDA_VISIBLE_DEVICES=3"]


def test_it_fits_80_columns_save_for_the_commands():
    lines = summary(report(BROKEN), directory="report")
    assert all(len(line) <= 80 or "replay" in line for line in lines)
