"""Changes the reference and the checkers mechanically, one place at a time: what notices?

Mutations are those of cosmic-ray's operators, and every statement left out. Each is loaded in a process of
its own. docs/mutation.md says what it meets there, and has the result. Exits 1 where a mutant is left that nothing
notices and mutation/explained.jsonl does not explain.
``python benchmarks/mutate.py [--module NAME] [--jobs N] [--part N] [--lines FILE]``
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from mutation.changes import Change, changes
from mutation.checkers import CheckerModule
from mutation.checkers import modules as checkers
from mutation.explained import KINDS, Explanation, Key, explained, key, outdated
from mutation.reference import MODULES, ReferenceModule
from mutation.trial import FINDINGS, Outcome, Target, Trials, survived

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


def table(outcomes: Sequence[Outcome], known: Mapping[Key, Explanation]) -> Iterator[str]:
    """A row per module: how many mutants what noticed, how many are explained, and how many are left."""
    yield "| module | mutants | verdict | findings | tests | explained | left |"
    yield "|---|---|---|---|---|---|---|"
    for module in dict.fromkeys(outcome.module for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.module == module]
        words = Counter(outcome.killed_by for outcome in own)
        over = [outcome for outcome in own if survived(outcome)]
        why = sum(key(outcome) in known for outcome in over)
        verdict = len(own) - len(over) - words[FINDINGS] - words["tests"]
        rest = (len(own), verdict, words[FINDINGS], words["tests"], why, len(over) - why)
        yield f"| `{module}` | {' | '.join(map(str, rest))} |"


def kinds(outcomes: Sequence[Outcome], known: Mapping[Key, Explanation]) -> Iterator[str]:
    """How many of those that are explained are of each kind."""
    counted = Counter(known[key(each)].kind for each in outcomes if survived(each) and key(each) in known)
    yield from (f"| {kind} | {counted[kind]} | {text} |" for kind, text in KINDS.items() if counted[kind])


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


def main() -> int:
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
    known = explained()
    print("\n".join((*table(outcomes, known), "", *kinds(outcomes, known))))
    left = [each for each in outcomes if survived(each) and key(each) not in known]
    for each in left:
        print(f"{each.module}.py:{each.line}: {each.operator}: {each.change} {each.killed_by}".rstrip())
    if parsed.part == 1 and not parsed.operator:
        for gone in outdated(outcomes, known):
            print(f"explained, and there no more: {gone.module}: {gone.operator}: {gone.change}")
    print(f"{time.monotonic() - start:.0f} s")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
