"""``vmm-conformance judge``: what is wrong in a history that somebody else wrote."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import IO, TYPE_CHECKING, Any, Final

from vmm_conformance.invocation import BadInvocation

if TYPE_CHECKING:
    from vmm_conformance.checkers.foreign import Judgement

FORMAT: Final = "vmm-conformance judgement"
AddCommand = Callable[[Any, str, Callable[[argparse.Namespace], int], str, str], Any]


def add_command(commands: Any, command: AddCommand) -> None:
    """Add it to the command line; ``command`` makes one."""
    text = "judge a history that another program wrote: legality, lifetime, access and ordering"
    parser = command(commands, "judge", _judge, text, "  vmm-conformance judge trace.jsonl\n")
    parser.add_argument("file", metavar="FILE", help="a history as JSON Lines, or - for standard input")
    parser.add_argument("--json", action="store_true", help="as JSON")


def judge_file(file: IO[str]) -> Judgement:
    """Judge a history as a stream. Raises `HistoryError` or `ForeignError` for what is none."""
    from vmm_conformance.checkers.foreign import Judgement
    from vmm_conformance.history.stream import HistoryStream
    from vmm_conformance.running.histories import resolve

    stream = HistoryStream(file, resolve)
    judgement = Judgement(stream.header)
    judgement.judge(stream)
    return judgement


def _judge(parsed: argparse.Namespace) -> int:
    from vmm_conformance.checkers.foreign import ForeignError
    from vmm_conformance.history.files import HistoryError

    try:
        with nullcontext(sys.stdin) if parsed.file == "-" else open(parsed.file, encoding="utf-8") as file:
            judgement = judge_file(file)
    except (HistoryError, ForeignError) as error:
        raise BadInvocation(f"{parsed.file}: {error}") from None
    except OSError as error:
        raise BadInvocation(f"the history cannot be read: {error}") from None
    print(json.dumps(_data(judgement), indent=2) if parsed.json else "\n".join(_lines(parsed.file, judgement)))
    return 1 if judgement.wrong else 0


def _data(judgement: Judgement) -> dict[str, Any]:
    wrong = [entry._asdict() for entry in judgement.wrong]
    return {"format": FORMAT, "version": 1, "events": judgement.events, "times": judgement.times, "findings": wrong}


def _lines(name: str, judgement: Judgement) -> Iterator[str]:
    from vmm_conformance.checkers.foreign import FAMILIES
    from vmm_conformance.reporting.text import count

    for family in FAMILIES:
        shown = [wrong for wrong in judgement.wrong if wrong.family == family]
        for wrong in shown:
            rule = f"  [{wrong.invariant}]" if wrong.invariant else ""
            because = f" (see line {wrong.cause})" if wrong.cause else ""
            yield f"{name}:{wrong.line}: {family}: {wrong.message}{because}{rule}"
        if judgement.times[family] > len(shown):
            yield f"{name}: {family}: {count(judgement.times[family] - len(shown), 'more finding')}, not shown"
    found = ", ".join(f"{family} {judgement.times[family]}" for family in FAMILIES)
    yield f"{count(judgement.events, 'event')}: {found}"
