"""One pass over a history, shared by everything that judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vmm_conformance.history.events import Event, History
from vmm_conformance.history.ordering import Order
from vmm_conformance.history.state import State


class Visitor:
    """Looks at each event; inherit to leave out what is not needed."""

    def before(self, event: Event) -> None:
        """The next event, while state and order are still as before it."""

    def after(self, event: Event) -> None:
        """The same event, when state and order have taken it in."""

    def finish(self) -> None:
        """There are no more events."""


class Replay:
    """The shared index: the state and the order of a history while it is walked."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.state = State()
        self.order = Order(self.state)

    def walk(self, *visitors: Visitor) -> None:
        """Show every event to every visitor, then let each finish."""
        self.follow(self.history.events, *visitors)

    def follow(self, events: Iterable[Event], *visitors: Visitor) -> None:
        """The same for events that come from elsewhere, one by one; none is kept."""
        state, order = self.state, self.order
        befores = _of_their_own(visitors, "before")
        afters = _of_their_own(visitors, "after")
        take_in, put_in_order = state.apply, order.apply
        for event in events:
            for before in befores:
                before(event)
            take_in(event)
            put_in_order(event)
            for after in afters:
                after(event)
        for visitor in visitors:
            visitor.finish()


def _of_their_own(visitors: tuple[Visitor, ...], name: str) -> list[Callable[[Event], None]]:
    """The methods ``name`` that do something: an empty call per event would cost more than the walk."""
    inherited = getattr(Visitor, name)
    return [getattr(v, name) for v in visitors if getattr(type(v), name) is not inherited]
