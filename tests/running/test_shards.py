"""Parts of a plan: together all of it, none twice, each with its share of what takes long."""

from __future__ import annotations

from collections import Counter

import pytest

from vmm_conformance.running.session import Options, part, plan
from vmm_conformance.running.shards import members, parse
from vmm_reference.subject import reference

SUBJECTS = {"reference": reference, "again": reference}


@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_shards_are_a_partition_and_even(of):
    whole = plan(SUBJECTS, Options())
    parts = [part(plan(SUBJECTS, options), options) for n in range(of) for options in [Options(shard=f"{n + 1}/{of}")]]
    assert sorted(item.id for one in parts for item in one) == sorted(item.id for item in whole)
    for kind in ("exploration", "scenario"):
        sizes = [Counter((item.subject_spec, item.kind) for item in one)["again", kind] for one in parts]
        assert max(sizes) - min(sizes) <= 1


def test_whose_an_item_is_depends_on_no_order():
    items = plan({"reference": reference}, Options())
    assert members(items, "2/3") == members(items[::-1], "2/3")
    assert members(items, "") == {item.id for item in items}


def test_more_shards_than_items_leave_some_empty():
    items = plan({"reference": reference}, Options())[:2]
    assert sum(len(members(items, f"{n}/5")) for n in range(1, 6)) == 2


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "1/2/3", "-1/2", "1/2 "])
def test_what_is_no_shard_is_one_line(text):
    with pytest.raises(ValueError, match=r"^shard must be K/N with K from 1 to N, as in 1/2, got "):
        parse(text)
