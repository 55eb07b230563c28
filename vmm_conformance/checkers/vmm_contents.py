"""What the caller's own queued work finds: an allocation's bytes, through its own address and its alias."""

from __future__ import annotations

from typing import Any

from vmm_conformance.checkers.vmm_calls import Family
from vmm_conformance.contracts import Range
from vmm_conformance.history.events import Event

KEPT, SHOWN = "ALLOC-182", "ALLOC-183"


class Contents(Family):
    """Models each block's tokens in the order in which its work was submitted; both ways lead to the same bytes.

    A block that work has faulted on, or that has lost a token, is not judged again.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._tokens: dict[int, dict[int, bytes]] = {}
        self._awaited: dict[int, tuple[Event, dict[str, Any], list[tuple[int, bytes | None]], str]] = {}
        self._blocks: dict[int, tuple[int, Range]] = {}
        self._spoiled: set[int] = set()

    def note(self, event: Event, what: str, details: dict[str, Any]) -> None:
        """Note where blocks are, and what work on them must find."""
        if what == "block":
            self._blocks[details["number"]] = details["ordinal"], details["address"]
        elif what == "work":
            tokens = self._tokens.setdefault(details["block"], {})
            awaited = [(offset, tokens.get(offset)) for offset, _ in details["reads"]]
            self._awaited[details["work"]] = event, details, awaited, self._about(details)
            for offset, token in details["writes"]:
                end = offset + len(token)
                for other in [at for at, held in tokens.items() if at < end and offset < at + len(held)]:
                    del tokens[other]
                tokens[offset] = token

    def _about(self, details: dict[str, Any]) -> str:
        """The invariant that a wrong byte breaks: what the alias was made by, where there is one."""
        if not details["alias"]:
            return KEPT
        found = self.ledger.allocation(*self._blocks[details["block"]])
        return found.alias.by if found is not None and found.alias is not None else SHOWN

    def ran(self, event: Event) -> None:
        """Compare what was read."""
        work, data, fault = event.args
        submitted, details, awaited, about = self._awaited.pop(work, (event, {"block": 0}, [], KEPT))
        if details["block"] in self._spoiled:
            return
        way = "through its alias" if details.get("alias") else "at its own address"
        if fault:
            self._spoil(details)
            self.judge.fail(
                about, submitted, f"the caller's work on block {details['block']} {way} met a fault: {fault.reason}",
                expected="it runs, whenever that is", actual=f"{fault.reason} at {fault.address:#x}",
                range=Range(fault.address, fault.size), cause=event.result,
            )  # fmt: skip
            return
        for (offset, token), found in zip(awaited, data, strict=False):
            if token is not None:
                self.judge.witness(about)
                if found != token:
                    self._spoil(details)
                    self.judge.fail(
                        about, submitted, f"block {details['block']} read {way} is not what was written at {offset}",
                        expected=token, actual=found,
                    )  # fmt: skip
                    return

    def _spoil(self, details: dict[str, Any]) -> None:
        self._spoiled.add(details["block"])


