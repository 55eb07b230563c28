"""What becomes of what an operation raises."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vmm_conformance.contracts import Code, DriverError, ExecuteFailed, SubjectError
from vmm_conformance.running.outcome import attempt


@pytest.mark.parametrize(
    "error",
    [
        lambda text: SubjectError(Code.ABORTED, text),
        lambda text: DriverError(1, "map", text),
        ExecuteFailed,
        ValueError,
    ],
)
def test_a_message_with_half_a_character_can_be_written_down(error: Callable[[str], Exception]) -> None:
    """As of a text that was cut, or of a file's name that is no text."""

    def action() -> None:
        raise error("cut \ud83d")

    message = attempt(action)["message"]
    assert "cut " in message
    message.encode()
