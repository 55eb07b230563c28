"""One pass over a history, shared by everything that judges it."""

from __future__ import annotations

from typing import Protocol

from vmm_conformance.history.events import Event, History
from vmm_conformance.history.ordering import Order
from vmm_conformance.history.state import State


class Visitor(Protocol):
    """Looks at each event, once with the state before it and once with the state after it."""

    def before(self, event: Event) -> None: ...
    def after(self, event: Event) -> None: ...
    def finish(self) -> None: ...


class Replay:
    """The shared index: the state and the order of a history while it is walked."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.state = State()
        self.order = Order(self.state)

    def walk(self, *visitors: Visitor) -> None:
        """Show every event to every visitor, then let each finish."""
        state, order = self.state, self.order
        befores = [visitor.before for visitor in visitors]
        afters = [visitor.after for visitor in visitors]
        for event in self.history.events:
            for before in befores:
                before(event)
            state.apply(event)
            order.apply(event)
            for after in afters:
                after(event)
        for visitor in visitors:
            visitor.finish()
