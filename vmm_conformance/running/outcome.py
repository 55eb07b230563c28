"""What an operation came to, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmm_conformance.contracts import DriverError, ExecuteFailed, SubjectError, status_name
from vmm_conformance.running.ended import Ended

Outcome = dict[str, Any]


def legible(text: str) -> str:
    """``text`` as reports can write it: with a question mark for each half of a character, as where it was cut."""
    return text.encode("utf-8", "replace").decode()


def attempt(action: Callable[[], object]) -> Outcome:
    """Run ``action`` and say how it ended.

    ``ok``; ``refused`` (a `SubjectError` or `DriverError`, with its code and text); ``raised`` (the
    execute callback's own failure, let through); ``crashed`` (anything else). An `Ended` comes through.
    """
    try:
        action()
    except SubjectError as error:
        return {"status": "refused", "code": error.code.value, "message": legible(error.message)}
    except DriverError as error:
        return {"status": "refused", "code": status_name(error.status), "message": legible(str(error))}
    except ExecuteFailed as error:
        return {"status": "raised", "code": "", "message": legible(str(error))}
    except Ended:
        raise
    except Exception as error:  # whatever a subject does is a verdict, never a traceback of ours
        return {"status": "crashed", "code": type(error).__name__, "message": legible(str(error))}
    return {"status": "ok", "code": "", "message": ""}
