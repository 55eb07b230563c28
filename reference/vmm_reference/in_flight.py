"""What the executor's memory may still be used by: the last step on every stream."""

from __future__ import annotations

from collections.abc import Callable

from vmm_conformance.contracts import Driver, DriverError


class InFlight:
    """One event for each stream that a step has run on since the host last waited (STEP-163).

    One event for all streams would not do: recording it for a step on one stream forgets the step that
    still runs on another.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        self.driver = driver
        self.device = device
        self.events: dict[int, int] = {}
        """Stream to the event behind its last step."""
        self.unrecorded: set[int] = set()
        """Streams whose last step has no event behind it, because recording it failed."""
        self.spare: list[int] = []
        self.last_stream: int | None = None

    def prepare(self, stream: int) -> None:
        """Have an event ready for ``stream``, so that nothing needs creating once work is submitted."""
        if stream not in self.events and not self.spare:
            self.spare.append(self.driver.event_create(self.device))

    def record(self, stream: int) -> None:
        """Mark the end of a step on ``stream`` (STEP-89).

        If the driver refuses, the step is remembered as one that only the whole device can be waited
        for, and the error goes on to the caller.
        """
        if stream not in self.events:
            self.events[stream] = self.spare.pop()
        self.last_stream = stream
        self.unrecorded.add(stream)
        self.driver.event_record(self.events[stream], stream)
        self.unrecorded.discard(stream)

    def wait(self) -> None:
        """Wait on the host for the last step on every stream. No driver call if there is none."""
        if self.unrecorded:
            self.driver.device_synchronize(self.device)
            self._forget_all()
        for stream, event in tuple(self.events.items()):
            self.driver.event_synchronize(event)
            self.spare.append(self.events.pop(stream))

    def settle(self) -> bool:
        """`wait` where no error can be raised: what an event cannot tell, the whole device must.

        False if the driver refuses that too: steps may still be running, and what they use must stay.
        """
        try:
            self.wait()
        except DriverError:
            if not self._try(self.driver.device_synchronize, self.device):
                return False
            self._forget_all()
        return True

    def order_behind_last_step(self, stream: int) -> None:
        """Let ``stream`` wait, on the device, for a last step that ran on another stream (SHADOW-118).

        Each step that comes here is ordered behind the one before it, so the last one stands for all.
        """
        last = self.last_stream
        if last is None or last == stream:
            return
        if last in self.unrecorded:
            self.wait()
        elif last in self.events:
            self.driver.stream_wait_event(stream, self.events[last])

    def destroy_events(self) -> None:
        """Give every event back; nothing may be in flight. One that the driver refuses is kept."""
        self.spare = [event for event in self.spare if not self._try(self.driver.event_destroy, event)]

    def _forget_all(self) -> None:
        self.spare.extend(self.events.values())
        self.events.clear()
        self.unrecorded.clear()

    @staticmethod
    def _try(call: Callable[[int], None], argument: int) -> bool:
        try:
            call(argument)
        except DriverError:
            return False
        return True
