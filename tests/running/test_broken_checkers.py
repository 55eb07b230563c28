"""A checker that breaks in the middle of an item: what was found before stays with its evidence."""

from __future__ import annotations

from typing import Any

import pytest

from vmm_conformance.related import known_bad
from vmm_conformance.running import explore
from vmm_conformance.running.explore import Judged
from vmm_conformance.running.session import Options, plan, run_item

SPEC = "vmm_conformance.related:known_bad,id=flags-any-base"


@pytest.mark.parametrize("breaks_at", [0, 20])
def test_what_was_found_before_is_kept(breaks_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = known_bad("flags-any-base")
    items = plan({SPEC: subject}, Options("smoke"))
    item = next(item for item in items if item.kind == "exploration" and item.contract == "flags")
    brief, seen = explore.Bench.brief, list[Any]()

    def breaking(self: Any, program: Any) -> Judged:
        seen.append(program)
        if len(seen) > breaks_at and program == seen[breaks_at]:
            raise KeyError("no such block")
        return brief(self, program)

    monkeypatch.setattr(explore.Bench, "brief", breaking)
    result = run_item(item, Options("smoke"))
    assert result.unknown == {"*": "KeyError: 'no such block'"}
    assert result.executed == breaks_at
    assert {failure.invariant for failure in result.failures} == ({"FLAG-155"} if breaks_at else set())
    assert all(failure.history for failure in result.failures)
