"""Judges what was chosen for which figures (AUTO-156, 157, 170 to 178).

Times and shares are floating-point numbers, which a subject may round its own way: a bound counts as
broken, or as left unused, beyond one part in a million.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.auto_model import LARGE, SMALL, Load, Model, is_usual
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import AutoBounds, CopyCosts, DeviceFigures
from vmm_conformance.history.events import Event, History

WEAKEST: Final = AutoBounds(slice_share=1.0, step_ms=float("inf"), free_share=1.0)
"""What holds of every subject, declared or not: copies beat a remap, and shadows fit."""


class Answer(NamedTuple):
    """One question and its answer. ``sizes`` are the selected slices', ascending by size."""

    event: Event
    device: DeviceFigures
    slices: tuple[int, ...]
    costs: CopyCosts
    cutoff: int
    selected: tuple[int, ...]

    @property
    def text(self) -> str:
        """The answer, for a message."""
        return f"cutoff {self.cutoff} bytes, {len(self.selected)} of {len(self.slices)} slices"


def judge(history: History) -> Judge:
    """What one history of the contract ``auto-threshold`` says. Pure."""
    verdicts = Judge()
    check(history, verdicts)
    return verdicts


def check(history: History, judge: Judge) -> None:
    """Add what ``history`` says to ``judge``."""
    answers = _Answers(judge, history.header.get("bounds"), history.header.get("ties", "whole"))
    asked: Event | None = None
    for event in history:
        if event.kind != "note":
            continue
        what, details = event.args
        if what == "asked":
            asked = event
        elif what in ("chose", "failed") and asked is not None:
            answers.take(asked, event, what, details)
        elif what == "allocated":
            _check_memory(judge, event, details)
        elif what == "stepped" and details["question"] in answers.good:
            _check_step(judge, event, details, answers.good[details["question"]])


class _Answers:
    """Judges each answer by itself, and beside those before it. ``good`` holds well-formed ones by question."""

    def __init__(self, judge: Judge, declared: AutoBounds | None, ties: str) -> None:
        self.good: dict[int, Answer] = {}
        self._judge = judge
        self._declared = declared is not None
        self._bounds = _at_most(declared or WEAKEST, WEAKEST)
        self._ties = ties
        self._equal: dict[Any, Answer] = {}
        self._by_free: dict[Any, list[Answer]] = {}
        self._by_bandwidth: dict[Any, list[Answer]] = {}

    def take(self, asked: Event, event: Event, what: str, details: dict[str, Any]) -> None:
        """Judge one more answer."""
        question = asked.args[1]
        if not _well_formed(self._judge, event, what, details, question["slices"]):
            return
        answer = Answer(event, question["device"], question["slices"], question["costs"], *_given(details))
        self.good[asked.seq] = answer
        self._alone(answer)
        self._beside(answer)

    def _alone(self, answer: Answer) -> None:
        judge = self._judge
        _check_nothing_known(judge, answer)
        model = Model(answer.device, answer.costs, self._bounds)
        sizes = sorted(answer.slices[index] for index in answer.selected)
        load = model.load(sizes)
        _check_bounds(judge, answer, model, load, sizes)
        _check_ties(judge, answer, self._ties)
        _check_explicit(judge, answer, self._ties)
        if self._declared:
            _check_maximal(judge, answer, model, load, self._ties)
        _check_usual_mix(judge, answer)

    def _beside(self, answer: Answer) -> None:
        device, costs = answer.device, answer.costs
        mix = tuple(sorted(answer.slices))
        same = (device, costs, mix)
        if earlier := self._equal.get(same):
            _check_equal(self._judge, answer, earlier)
        else:
            self._equal[same] = answer
            free, bandwidth, rest = device.free, device.bandwidth, (device.capacity, device.alignment, costs, mix)
            _check_monotone(self._judge, "AUTO-171", answer, self._by_free.setdefault((bandwidth, *rest), []), _free)
            _check_monotone(
                self._judge, "AUTO-172", answer, self._by_bandwidth.setdefault((free, *rest), []), _bandwidth
            )


def _at_most(bounds: AutoBounds, most: AutoBounds) -> AutoBounds:
    """``bounds``, none looser than ``most``."""
    slice_share, free_share = min(bounds.slice_share, most.slice_share), min(bounds.free_share, most.free_share)
    return AutoBounds(slice_share, bounds.step_ms, free_share, bounds.reserve_share)


def _given(details: dict[str, Any]) -> tuple[int, tuple[int, ...]]:
    return details["cutoff"], details["selected"]


def _free(answer: Answer) -> int:
    return answer.device.free


def _bandwidth(answer: Answer) -> int:
    return answer.device.bandwidth


# -- one answer by itself


def _well_formed(judge: Judge, event: Event, what: str, details: dict[str, Any], slices: Sequence[int]) -> bool:
    """AUTO-174."""
    if what == "failed":
        actual = f"{details['status']} with {details['code']}: {details['message']}"
        judge.expect("AUTO-174", event, False, "a question was not answered", expected="a choice", actual=actual)
        return False
    cutoff, selected = _given(details)
    known = range(len(slices))
    numbers = all(type(index) is int for index in selected)
    ascending = numbers and all(a < b for a, b in pairwise(selected))
    good = cutoff >= 0 and ascending and all(index in known and slices[index] > 0 for index in selected)
    return judge.expect(
        "AUTO-174",
        event,
        good,
        "a choice is a cutoff of no less than 0 bytes and ascending indices of slices that are not empty",
        expected=f"cutoff >= 0, indices from 0 to {len(slices) - 1} of slices of a byte or more",
        actual=f"cutoff {cutoff}, indices {_few(selected)} of slices {_few(slices)}",
    )


def _check_nothing_known(judge: Judge, answer: Answer) -> None:
    """AUTO-173."""
    device = answer.device
    if (device.free and device.bandwidth) or not any(answer.slices):
        return
    why = "there is no free memory" if not device.free else "the bandwidth is unknown"
    good = answer.cutoff == 0 and not answer.selected
    judge.expect(
        "AUTO-173", answer.event, good, f"{why}, and slices are copied", expected="cutoff 0", actual=answer.text
    )


def _check_bounds(judge: Judge, answer: Answer, model: Model, load: Load, sizes: Sequence[int]) -> None:
    """AUTO-156: no slice is passed over for a larger one, and the selected ones keep all three bounds."""
    if not sizes:
        return
    chosen = set(answer.selected)
    passed = min((n for i, n in enumerate(answer.slices) if n > 0 and i not in chosen), default=sizes[-1])
    judge.expect(
        "AUTO-156",
        answer.event,
        passed >= sizes[-1],
        f"a slice of {passed} bytes was passed over for one of {sizes[-1]}",
        expected="the smallest slices first",
        actual=answer.text,
    )
    for broken in model.broken(sizes[-1], load) if model.known else ():
        judge.fail("AUTO-156", answer.event, broken.what, expected=broken.limit, actual=broken.actual)


def _check_ties(judge: Judge, answer: Answer, ties: str) -> None:
    """AUTO-175: told by a size that occurs twice and of which some slice is selected."""
    chosen = set(answer.selected)
    sizes = {answer.slices[index] for index in chosen}
    by_size: dict[int, list[bool]] = {size: [] for size in sizes}
    for index, size in enumerate(answer.slices):
        if size in sizes:
            by_size[size].append(index in chosen)
    for size, taken in by_size.items():
        if len(taken) < 2:
            continue
        first = taken == sorted(taken, reverse=True)
        judge.expect(
            "AUTO-175",
            answer.event,
            all(taken) or (ties == "index" and first),
            f"of {len(taken)} slices of {size} bytes {sum(taken)} are selected",
            expected="all or none of them" if ties != "index" else "the first ones by index",
            actual=answer.text,
        )


def _check_explicit(judge: Judge, answer: Answer, ties: str) -> None:
    """AUTO-176 by the rule for explicit thresholds; a split tie at the cutoff is the subject's own affair."""
    if not any(answer.slices):
        return
    by_cutoff = tuple(index for index, size in enumerate(answer.slices) if 0 < size <= answer.cutoff)
    good = by_cutoff == answer.selected
    if not good and ties == "index":
        below = {index for index in by_cutoff if answer.slices[index] < answer.cutoff}
        good = below <= set(answer.selected) <= set(by_cutoff)
    judge.expect(
        "AUTO-176",
        answer.event,
        good,
        f"a copy threshold of {answer.cutoff} bytes selects other slices than the choice that it came with",
        expected=f"indices {_few(by_cutoff)}",
        actual=f"indices {_few(answer.selected)}",
    )


def _check_maximal(judge: Judge, answer: Answer, model: Model, load: Load, ties: str) -> None:
    """AUTO-177: what comes next would break a bound."""
    chosen = set(answer.selected)
    left = sorted(size for index, size in enumerate(answer.slices) if size > 0 and index not in chosen)
    if not left or not model.known:
        return
    count = 1 if ties == "index" else left.count(left[0])
    more = model.load([left[0]] * count, load)
    judge.expect(
        "AUTO-177",
        answer.event,
        bool(model.broken(left[0], more, -1)),
        f"{count} more of {left[0]} bytes would have kept every declared bound",
        expected=f"a cutoff of {left[0]} bytes or more",
        actual=answer.text,
    )


def _check_usual_mix(judge: Judge, answer: Answer) -> None:
    """AUTO-178: told by a few hundred small slices beside large ones on a device as they are built."""
    if not is_usual(answer.device, answer.costs, answer.slices):
        return
    small = tuple(index for index, size in enumerate(answer.slices) if 0 < size <= SMALL)
    judge.expect(
        "AUTO-178",
        answer.event,
        answer.selected == small,
        f"of a few hundred slices of up to {SMALL} bytes beside ones of {LARGE} and more, "
        "the small ones are to be copied and the large ones remapped",
        expected=f"{len(small)} slices",
        actual=answer.text,
    )


# -- answers beside each other


def _check_equal(judge: Judge, answer: Answer, earlier: Answer) -> None:
    """AUTO-170: an equal question, or one that differs in the order of the slices alone."""
    good = answer.cutoff == earlier.cutoff
    if answer.slices == earlier.slices:
        good = good and answer.selected == earlier.selected
    judge.expect(
        "AUTO-170",
        answer.event,
        good,
        "the same question had another answer before",
        expected=earlier.text,
        actual=answer.text,
        cause=earlier.event.seq,
    )


def _check_monotone(
    judge: Judge, id: str, answer: Answer, others: list[Answer], figure: Callable[[Answer], int]
) -> None:
    """AUTO-171 and 172: beside the nearest answers with less and with more; ``others`` ascend by the figure."""
    at = bisect_left(others, figure(answer), key=figure)
    pairs = [(others[at - 1], answer)] if at else []
    pairs += [(answer, others[at])] if at < len(others) else []
    others.insert(at, answer)
    name = figure.__name__.strip("_")
    for less, more in pairs:
        judge.expect(
            id,
            answer.event,
            less.cutoff <= more.cutoff and len(less.selected) <= len(more.selected),
            f"less is copied with {name} {figure(more)} than with {name} {figure(less)}",
            expected=f"{less.text} or more",
            actual=more.text,
            cause=less.event.seq if less is not answer else more.event.seq,
        )


# -- what becomes of a choice


def _check_memory(judge: Judge, event: Event, details: dict[str, Any]) -> None:
    """AUTO-157."""
    if not details["many"]:
        return
    judge.expect(
        "AUTO-157",
        event,
        details["shadows"] == details["many"],
        f"there was memory for {details['shadows']} of the {details['many']} shadows that were chosen",
        expected=f"{details['many']} shadows",
        actual=details["error"],
    )


def _check_step(judge: Judge, event: Event, details: dict[str, Any], answer: Answer) -> None:
    """AUTO-176 as the subject's own executor has it; a step that fails is another contract's affair."""
    if details["outcome"]["status"] != "ok" or not any(answer.slices):
        return
    by_cutoff = tuple(index for index, size in enumerate(answer.slices) if 0 < size <= answer.cutoff)
    judge.expect(
        "AUTO-176",
        event,
        details["copied"] == by_cutoff,
        f"a step with a copy threshold of {answer.cutoff} bytes copies other slices than were chosen",
        expected=f"indices {_few(by_cutoff)}",
        actual=f"indices {_few(details['copied'])}",
        cause=answer.event.seq,
    )


def _few(numbers: Sequence[object]) -> str:
    shown = ", ".join(str(number) for number in numbers[:8])
    return f"[{shown}, ...] ({len(numbers)})" if len(numbers) > 8 else f"[{shown}]"
