"""Changes the reference and the checkers mechanically, one place at a time: what notices?

Mutations are those of cosmic-ray's operators, and every statement left out. Each is loaded in a process of
its own. docs/mutation.md says what it meets there, and has the result.
``python benchmarks/mutate.py [--module NAME] [--jobs N] [--part N] [--lines FILE]``
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from mutation.changes import Change, changes
from mutation.checkers import CheckerModule
from mutation.checkers import modules as checkers
from mutation.reference import MODULES, ReferenceModule
from mutation.trial import COUNTS, FINDINGS, Outcome, Target, Trials

Targets = Mapping[str, Callable[[], Target]]
Told = Callable[[Outcome], None]


def targets(programs: int, more: int, store: Path | None) -> Targets:
    """Every module that can be changed, by name: those of the reference, and the checkers as ``checkers/NAME``."""
    reference: Targets = {name: partial(ReferenceModule, name, programs, more) for name in MODULES}
    judges: Targets = {f"checkers/{name}": partial(CheckerModule, name, programs, store) for name in checkers()}
    return {**reference, **judges}


def run(name: str, target: Target, wanted: argparse.Namespace, done: Sequence[Outcome], told: Told) -> None:
    """Try the mutants of ``target`` that are ``wanted`` but those that are ``done``."""
    trials = Trials(target)
    killer = trials.of(None)
    if killer:
        sys.exit(f"{name}: unchanged it is found broken by {killer}; nothing can be learnt from its mutants")
    known = {(outcome.operator, outcome.line, outcome.change) for outcome in done if outcome.module == name}

    def one(change: Change) -> None:
        told(Outcome(name, change.operator, change.line, change.text, trials.of(change)))

    with ThreadPoolExecutor(wanted.jobs) as pool:
        mutants = [each for each in changes(trials.source) if each.operator.startswith(tuple(wanted.operator or [""]))]
        mutants = mutants[:: wanted.part]
        left = [each for each in mutants if (each.operator, each.line, each.text) not in known]
        for _ in pool.map(one, left):
            pass


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A row of a table per module, then the survivors, one a line; last, those that only counts tell apart."""
    yield "| module | mutants | verdict | findings | tests | counts | left |"
    yield "|---|---|---|---|---|---|---|"
    for module in dict.fromkeys(outcome.module for outcome in outcomes):
        own = [outcome.killed_by for outcome in outcomes if outcome.module == module]
        rest = [own.count(word) for word in (FINDINGS, "tests", COUNTS, "")]
        yield f"| `{module}` | {' | '.join(map(str, (len(own), len(own) - sum(rest), *rest)))} |"
    for weak in ("", COUNTS):
        for outcome in outcomes:
            if outcome.killed_by == weak:
                yield f"{outcome.module}.py:{outcome.line}: {outcome.operator}: {outcome.change} {weak}".rstrip()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", action="append", metavar="NAME", help="only this one (repeatable)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--programs", type=int, default=200, help="random programs of the first round (default: 200)")
    parser.add_argument("--more", type=int, default=1_000, help="programs that a survivor meets (default: 1,000)")
    parser.add_argument("--part", type=int, default=1, metavar="N", help="every N-th mutant only (default: 1)")
    parser.add_argument("--operator", action="append", metavar="NAME", help="only those that begin so (repeatable)")
    parser.add_argument("--lines", type=Path, metavar="FILE", help="append outcomes there as JSON; go on from those")
    parser.add_argument("--store", type=Path, metavar="DIR", help="keep the checkers' histories there, for this code")
    parsed = parser.parse_args()
    known = targets(parsed.programs, parsed.more, parsed.store)
    for name in parsed.module or ():
        if name not in known:
            parser.error(f"unknown module {name!r}; accepted: {', '.join(known)}")
    parsed.targets = {name: known[name] for name in parsed.module or known}
    return parsed


def main() -> None:
    parsed = arguments()
    start = time.monotonic()
    outcomes: list[Outcome] = []
    if parsed.lines and parsed.lines.exists():
        outcomes = [Outcome(**json.loads(line)) for line in parsed.lines.read_text("utf-8").splitlines()]

    def told(outcome: Outcome) -> None:
        outcomes.append(outcome)
        print("." if outcome.killed_by else "S", end="", file=sys.stderr, flush=True)
        if parsed.lines:
            with parsed.lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")

    for name, target in parsed.targets.items():
        run(name, target(), parsed, list(outcomes), told)
        print(f" {name}", file=sys.stderr)
    print("\n".join(lines(outcomes)))
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
