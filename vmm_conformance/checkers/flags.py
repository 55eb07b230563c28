"""Judges what settings were read from which texts (FLAG-147 to 152, 154, 155, 165).

In the environment revisions a process reads once: its first read on ROCM is judged by the tables of
`flag_tables`, later ones by being the same (152). In revision ``flags`` every read is judged by the
tables, and equal reads must come to the same, whatever came before them in their process (152).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from vmm_conformance.checkers.flag_tables import (
    OFF,
    SOURCES,
    Allowed,
    Expected,
    Texts,
    expected,
    is_dropped,
    is_negative,
    rule,
)
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Code, Revision
from vmm_conformance.history.events import Event, History

ROCM: Final = "ROCM"


Asked = tuple[str, frozenset[tuple[str, str]], frozenset[tuple[str, str]]]
"""All that a read was given: platform, environment, options."""


class Answer(NamedTuple):
    """One read: what was asked, and what came of it (``settings``, ``refused`` or ``raised``).

    ``texts`` are those that the revision looks at.
    """

    event: Event
    platform: str
    texts: Texts
    asked: Asked
    what: str
    details: dict[str, Any]

    @property
    def settings(self) -> tuple[Any, Any] | None:
        """The values of both settings; None where the read gave none."""
        if self.what != "settings":
            return None
        return self.details["skip_remap"], self.details["copy_threshold"]

    def __str__(self) -> str:
        return f"a read on platform {self.platform!r} of skip-remap {_shown(self.texts.skip_remap)}" + (
            f" and copy threshold {_shown(self.texts.copy_threshold)}"
        )

    @property
    def actual(self) -> str:
        """What came of it, for a message."""
        if self.settings:
            return f"skip_remap={self.settings[0]!r}, copy_threshold={self.settings[1]!r}"
        return f"{self.what} with {self.details['code']}: {self.details['message']}"


def judge(history: History) -> Judge:
    """What one history of the contract ``flags`` says. Pure."""
    verdicts = Judge()
    check(history, verdicts)
    return verdicts


def check(history: History, judge: Judge) -> None:
    """Add what ``history`` says to ``judge``."""
    revision = Revision(history.header["configuration"].revision)
    processes = [answers for answers in _processes(history, revision) if answers]
    if revision is Revision.FLAGS:
        _check_options(judge, processes)
    else:
        for answers in processes:
            _check_environment(judge, revision, answers)


def _processes(history: History, revision: Revision) -> Iterator[list[Answer]]:
    """The reads of each process, in order."""
    source, skip_name, threshold_name = SOURCES[revision]
    operation: Any = None
    answers: list[Answer] = []
    for event in history:
        if event.kind == "begin":
            operation = event["operation"]
            if not hasattr(operation, "platform"):  # a new process
                yield answers
                answers = []
        elif event.kind == "note" and hasattr(operation, "platform"):
            given = getattr(operation, source)
            texts = Texts(given.get(skip_name), given.get(threshold_name))
            answers.append(Answer(event, operation.platform, texts, _asked(operation), *event.args))
    yield answers


def _asked(operation: Any) -> Asked:
    environment, options = frozenset(operation.environment.items()), frozenset(operation.options.items())
    return operation.platform, environment, options


def _check_environment(judge: Judge, revision: Revision, answers: list[Answer]) -> None:
    first = answers[0]
    settled: Answer | None = None
    for answer in answers:
        if answer.platform != ROCM:
            _check_gate(judge, answer, expected(revision, first.texts))
        elif settled is None:
            settled = answer
            # Whether a read on another platform fixes the texts is not said, so only equal ones are judged.
            if answer.texts == first.texts:
                _check_values(judge, revision, answer)
        elif settled.settings:
            _check_once(judge, revision, settled, answer)


def _check_once(judge: Judge, revision: Revision, settled: Answer, answer: Answer) -> None:
    """FLAG-152 in the environment: told by a read whose own texts would have given something else."""
    same = _equal(settled, answer)
    own = expected(revision, answer.texts)
    values = settled.settings or ()
    if same and all(allowed.holds(value) for allowed, value in zip(own, values, strict=True)):
        return
    judge.expect(
        "FLAG-152",
        answer.event,
        same,
        f"{answer} came to something else than the first one in its process; the environment is read once",
        expected=settled.actual,
        actual=answer.actual,
        cause=settled.event.seq,
    )


def _check_options(judge: Judge, processes: list[list[Answer]]) -> None:
    alone: dict[Asked, Answer] = {}
    after: dict[Asked, Answer] = {}
    for answers in processes:
        first = answers[0]
        for answer in answers:
            wanted = _wanted(answer)
            if answer.platform == ROCM:
                _check_values(judge, Revision.FLAGS, answer)
            else:
                _check_gate(judge, answer, expected(Revision.FLAGS, answer.texts))
            if answer is first:
                _check_per_call(judge, answer, alone, after)
            elif wanted.excludes(_wanted(first)):
                _check_per_call(judge, answer, after, alone)


def _check_per_call(
    judge: Judge,
    answer: Answer,
    mine: dict[Asked, Answer],
    others: dict[Asked, Answer],
) -> None:
    """FLAG-152 for options: a read first in its process, and an equal one behind a read that differs."""
    mine.setdefault(answer.asked, answer)
    if other := others.get(answer.asked):
        judge.expect(
            "FLAG-152",
            answer.event,
            _equal(answer, other),
            f"{answer} came to something else than an equal one elsewhere; options are read at each call",
            expected=other.actual,
            actual=answer.actual,
            cause=other.event.seq,
        )


def _wanted(answer: Answer) -> Expected:
    """What a read of options may come to on its platform: elsewhere than on ROCM it may still be refused."""
    on_rocm = expected(Revision.FLAGS, answer.texts)
    if answer.platform == ROCM:
        return on_rocm
    return Expected(*(Allowed(off.values, on.refusal) for off, on in zip(OFF, on_rocm, strict=True)))


def _check_gate(judge: Judge, answer: Answer, on_rocm: Expected) -> None:
    """FLAG-147: told only where ROCM would have got something."""
    if answer.what == "refused" and on_rocm.can_refuse:
        return
    good = _holds(OFF, answer)
    if good and (on_rocm.must_refuse or _holds_all_off(on_rocm)):
        return
    judge.expect(
        "FLAG-147",
        answer.event,
        good,
        f"{answer} must be off: the optimisation is for the platform {ROCM!r}, spelled like that",
        expected="skip_remap=False, copy_threshold=0",
        actual=answer.actual,
    )


def _check_values(judge: Judge, revision: Revision, answer: Answer) -> None:
    wanted = expected(revision, answer.texts)
    if not answer.settings:
        _check_refusal(judge, revision, answer, wanted)
        return
    for setting, text, allowed, value in zip(Texts._fields, answer.texts, wanted, answer.settings, strict=True):
        judge.expect(
            rule(revision, setting, text),
            answer.event,
            allowed.holds(value),
            f"{answer} in revision {revision}: {setting} is wrong",
            expected=_expected(setting, text, allowed),
            actual=answer.actual,
        )
    _check_negative(judge, answer, answer.settings[1])
    if revision is not Revision.FLAGS:
        _check_warnings(judge, answer, answer.settings[1])


def _check_negative(judge: Judge, answer: Answer, threshold: object) -> None:
    """FLAG-154."""
    if is_negative(answer.texts.copy_threshold):
        judge.expect(
            "FLAG-154",
            answer.event,
            threshold == 0,
            f"{answer} turned copying on; a negative number must not",
            expected="copy_threshold=0",
            actual=answer.actual,
        )


def _check_warnings(judge: Judge, answer: Answer, threshold: object) -> None:
    """FLAG-165: a dropped text is quoted in a warning, and nothing is said where nothing was given."""
    warnings = answer.details["warnings"]
    text = answer.texts.copy_threshold
    if is_dropped(text, threshold):
        good = any(_quotes(warning, text or "") for warning in warnings)
        message, wanted = f"{answer} dropped {text!r} without a word", f"a warning that quotes {text!r}"
    elif not any(answer.texts):
        good = not warnings
        message, wanted = f"{answer} warned, though nothing was given", "no warning"
    else:
        return
    judge.expect("FLAG-165", answer.event, good, message, expected=wanted, actual=f"warnings {list(warnings)}")


def _check_refusal(judge: Judge, revision: Revision, answer: Answer, wanted: Expected) -> None:
    """A read without settings is right only as a refusal that quotes a text that may be refused."""
    names, good = _charged(answer, wanted)
    for name in names:
        text, allowed = getattr(answer.texts, name), getattr(wanted, name)
        judge.expect(
            rule(revision, name, text),
            answer.event,
            good,
            f"{answer} in revision {revision} gave no settings",
            expected=_expected(name, text, allowed),
            actual=answer.actual,
        )


def _charged(answer: Answer, wanted: Expected) -> tuple[list[str], bool]:
    """The settings that a read without settings is about, and whether it is right."""
    texts = answer.texts._asdict()
    given = [name for name, text in texts.items() if text is not None]
    named = _in_order(answer.details["message"], {name: texts[name] or "" for name in given})
    refusable = [name for name in given if getattr(wanted, name).refusal]
    if answer.what != "refused" or not refusable:
        return named[:1] or given or list(texts), False
    rightly = [name for name in named if name in refusable][:1]  # what follows may be words of advice
    right_code = answer.details["code"] == Code.INVALID_ARGUMENT
    if right_code and not rightly and any(texts[name] == "" for name in refusable):
        return [], True  # an empty text cannot be seen in a message
    return rightly or refusable, right_code and bool(rightly)


def _expected(name: str, text: str | None, allowed: Allowed) -> str:
    refusal = [f"{Code.INVALID_ARGUMENT} with a message that quotes {text!r}"] * allowed.refusal
    return " or ".join([*(f"{name}={value!r}" for value in allowed.values), *refusal])


def _holds(wanted: Expected, answer: Answer) -> bool:
    settings = answer.settings
    return bool(settings) and all(a.holds(value) for a, value in zip(wanted, settings or (), strict=True))


def _holds_all_off(wanted: Expected) -> bool:
    return wanted.skip_remap.holds(False) and wanted.copy_threshold.holds(0)


def _equal(one: Answer, other: Answer) -> bool:
    if one.settings is None or other.settings is None:
        return one.what == other.what
    pairs = zip(one.settings, other.settings, strict=True)
    return all(type(a) is type(b) and a == b for a, b in pairs)


def _quotes(message: str, text: str) -> re.Match[str] | None:
    """Where ``message`` has ``text`` in it, as it is or escaped, and not as a part of a longer word."""
    forms = "|".join(re.escape(form) for form in (text, ascii(text)[1:-1], repr(text)[1:-1]))
    return re.search(rf"(?<!\w)(?:{forms})(?!\w)", message)


def _in_order(message: str, texts: dict[str, str]) -> list[str]:
    """The settings whose text ``message`` quotes, in the order in which it does."""
    found = [(match.start(), name) for name, text in texts.items() if text and (match := _quotes(message, text))]
    return [name for _, name in sorted(found)]


def _shown(text: str | None) -> str:
    return "unset" if text is None else repr(text)
