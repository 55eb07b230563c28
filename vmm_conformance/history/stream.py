"""Reads a history event by event, so that it need not fit into memory.

The format is that of `history.files`. Here every type is checked, since whatever wrote the file may have been
written by hand; an error names the line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

from vmm_conformance.history.events import DEVICE, FIELDS, HARNESS, SUBJECT, Event
from vmm_conformance.history.files import HistoryError, Resolve, decode, read_head
from vmm_conformance.history.shapes import PLAIN, RESULTS, complaint

LONGEST: Final = 16 << 20
"""Characters of one line."""
_WHO: Final = frozenset({SUBJECT, HARNESS, DEVICE})
_COUNTS: Final = {kind: len(names) for kind, names in FIELDS.items()}
_SHAPE: Final = "[op, thread, who, kind, [arguments], status, result]"


class HistoryStream:
    """``header``, and then the events, each read when it is asked for.

    Raises `HistoryError` with the line's number for what is no history; nothing is read ahead.
    """

    def __init__(self, file: IO[str], resolve: Resolve) -> None:
        self._file = file
        self._resolve = resolve
        line = self._line(1)
        try:
            self.header = read_head([line] if line else [], resolve)
        except HistoryError as error:
            raise HistoryError(f"line 1: {error}") from None
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            raise HistoryError(f"line 1: {_cut(line)}{type(error).__name__}: {error}") from None

    def __iter__(self) -> Iterator[Event]:
        number = 1
        while line := self._line(number := number + 1):
            try:
                yield event_of(json.loads(line), number - 2, self._resolve)
            except HistoryError as error:
                raise HistoryError(f"line {number}: {error}") from None
            except json.JSONDecodeError as error:
                raise HistoryError(f"line {number}: {_cut(line)}no JSON: {error}") from None
            except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
                raise HistoryError(f"line {number}: {type(error).__name__}: {error}") from None

    def _line(self, number: int) -> str:
        try:
            line = self._file.readline(LONGEST + 1)
        except UnicodeDecodeError as error:
            raise HistoryError(f"line {number} or just behind it: not UTF-8: {error}") from None
        if len(line) > LONGEST:
            raise HistoryError(f"line {number}: longer than {LONGEST} characters; write one event a line")
        return line


def _cut(line: str) -> str:
    return "" if line.endswith("\n") else "cut off in the middle, the file ends here; "


def event_of(values: Any, seq: int, resolve: Resolve) -> Event:
    """The event that a line stands for, as JSON gives it. Raises `HistoryError` and whatever wrong types raise."""
    if type(values) is not list or len(values) != 7:
        raise HistoryError(f"an event must be a list of seven, {_SHAPE}, got {values!r:.80}")
    op, thread, who, kind, args, status, result = values
    if type(kind) is not str or kind not in FIELDS:
        raise HistoryError(f"unknown kind of event {kind!r:.60}; accepted: {', '.join(FIELDS)}")
    if type(args) is not list or len(args) != _COUNTS[kind]:
        got = f"{len(args)} of them" if type(args) is list else repr(args)[:60]
        raise HistoryError(f"a {kind} event has the arguments {', '.join(FIELDS[kind])}, got {got}")
    if type(op) is not int or type(thread) is not int or type(status) is not int:
        raise HistoryError(f"op, thread and status must be whole numbers, got {[op, thread, status]!r:.80}")
    if who not in _WHO:
        raise HistoryError(f"who must be {SUBJECT!r}, {HARNESS!r} or {DEVICE!r}, got {who!r:.60}")
    if kind in PLAIN and set(map(type, args)) == {int} and (type(result) is int or kind not in RESULTS):
        return Event(seq, op, thread, who, kind, tuple(args), status, decode(result, resolve))
    return _checked(Event(seq, op, thread, who, kind, tuple(decode(v, resolve) for v in args), status, result), resolve)


def _checked(event: Event, resolve: Resolve) -> Event:
    event.result = decode(event.result, resolve)
    wrong = complaint(event.kind, event.args, event.status, event.result)
    if wrong:
        raise HistoryError(wrong)
    return event
