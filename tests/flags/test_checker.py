"""The checker against histories written by hand: right ones, wrong ones, and ones that test nothing."""

from __future__ import annotations

from typing import Any

import pytest

from vmm_conformance.checkers.flags import judge
from vmm_conformance.checkers.judge import Judge
from vmm_conformance.contracts import Revision
from vmm_conformance.history.events import HARNESS, Event, History
from vmm_conformance.programs.flags import ENVIRONMENT, OPTIONS, Configuration, NewProcess, Operation, Read

AUTO, BYTES, FLAGS = Revision.ENV_AUTO, Revision.ENV_BYTES, Revision.FLAGS
NEW = (NewProcess(), None)
Step = tuple[Operation, tuple[str, dict[str, Any]] | None]


def variables(skip: str | None = None, copy: str | None = None, platform: str = "ROCM") -> Read:
    return Read(platform, environment=named(ENVIRONMENT, skip, copy))


def options(skip: str | None = None, copy: str | None = None, platform: str = "ROCM") -> Read:
    return Read(platform, options=named(OPTIONS, skip, copy))


def named(names: tuple[str, str], *texts: str | None) -> dict[str, str]:
    return {name: text for name, text in zip(names, texts, strict=True) if text is not None}


def gave(skip: object, copy: object, *warnings: str) -> tuple[str, dict[str, Any]]:
    return "settings", {"skip_remap": skip, "copy_threshold": copy, "warnings": warnings}


def refused(message: str, code: str = "INVALID_ARGUMENT") -> tuple[str, dict[str, Any]]:
    return "refused", {"code": code, "message": message}


PLUS = options(None, "+5")
SEVEN: Step = (options("1", "7"), gave(True, 7))
RAISED = ("raised", {"code": "ValueError", "message": "invalid literal"})


def judge_of(revision: Revision, *steps: Step) -> Judge:
    history = History({"contract": "flags", "configuration": Configuration(revision)})
    for op, (operation, note) in enumerate(steps):
        parts: list[tuple[str, tuple[Any, ...]]] = [("begin", (operation,)), ("end", ({},))]
        if note:
            parts.insert(1, ("note", note))
        for kind, arguments in parts:
            history.events.append(Event(len(history), op, 0, HARNESS, kind, arguments))
    return judge(history)


def broken(verdicts: Judge) -> set[str]:
    return {finding.invariant for finding in verdicts.findings}


GOOD: list[tuple[str, Revision, list[Step], dict[str, int]]] = [
    ("defaults", BYTES, [(variables(), gave(True, 0))], {"FLAG-151": 2, "FLAG-165": 1}),
    ("auto by default", AUTO, [(variables(), gave(True, "auto"))], {"FLAG-151": 1, "FLAG-155": 1, "FLAG-165": 1}),
    ("off words", BYTES, [(variables("oFf", ""), gave(False, 0))], {"FLAG-148": 1, "FLAG-149": 1}),
    ("empty is on", BYTES, [(variables("", "7"), gave(True, 7))], {"FLAG-148": 1, "FLAG-149": 1}),
    ("long s is no s", BYTES, [(variables("fal\u017fe"), gave(True, 0))], {"FLAG-148": 1, "FLAG-151": 1}),
    (
        "junk is dropped with a warning",
        BYTES,
        [(variables(None, "4M"), gave(True, 0, "'4M' is no number"))],
        {"FLAG-149": 1, "FLAG-151": 1, "FLAG-165": 1},
    ),
    (
        "-1",
        AUTO,
        [(variables(None, "-1"), gave(True, 0, "dropped -1"))],
        {"FLAG-151": 1, "FLAG-154": 1, "FLAG-155": 1, "FLAG-165": 1},
    ),
    ("a plus may be taken", BYTES, [(variables(None, "+5"), gave(True, 5))], {"FLAG-149": 1, "FLAG-151": 1}),
    (
        "a plus may be dropped",
        BYTES,
        [(variables(None, "+5"), gave(True, 0, "+5?"))],
        {"FLAG-149": 1, "FLAG-151": 1, "FLAG-165": 1},
    ),
    (
        "a warning may escape a text",
        BYTES,
        [(variables(None, "4\u017f"), gave(True, 0, "4\\u017f is no number"))],
        {"FLAG-149": 1, "FLAG-151": 1, "FLAG-165": 1},
    ),
    (
        "a warning may escape control characters alone",
        BYTES,
        [(variables(None, "4\u017f\n"), gave(True, 0, "4\u017f\\n is no number"))],
        {"FLAG-149": 1, "FLAG-151": 1, "FLAG-165": 1},
    ),
    ("one is auto", AUTO, [(variables(None, "1"), gave(True, "auto"))], {"FLAG-151": 1, "FLAG-155": 1}),
    ("one is one", BYTES, [(variables(None, "1"), gave(True, 1))], {"FLAG-149": 1, "FLAG-151": 1}),
    (
        "read once",
        BYTES,
        [(variables(None, "7"), gave(True, 7)), (variables("0", "8"), gave(True, 7))],
        {"FLAG-149": 1, "FLAG-151": 1, "FLAG-152": 1},
    ),
    ("gate", BYTES, [(variables("1", "7", "CUDA"), gave(False, 0))], {"FLAG-147": 1}),
    ("option", FLAGS, [(options("TRUE", "-5"), gave(True, 0))], {"FLAG-148": 1, "FLAG-150": 1, "FLAG-154": 1}),
    ("refusal", FLAGS, [(options("1", "4M"), refused("no integer: 4M"))], {"FLAG-150": 1}),
    ("refusal of either", FLAGS, [(options("junk", "4M"), refused("not a bool: 'junk'"))], {"FLAG-148": 1}),
    (
        "a refusal is about the text that it quotes first",
        FLAGS,
        [(options("junk", "4M"), refused("not a bool: 'junk' (nor is 4M)"))],
        {"FLAG-148": 1},
    ),
    ("below 64 bits", FLAGS, [(options(None, str(-(2**63) - 1)), refused(f"{-(2**63) - 1}: low"))], {"FLAG-150": 1}),
    ("overflow is refused", FLAGS, [(options(None, str(2**63)), refused(f"{2**63}: too large"))], {"FLAG-150": 1}),
    (
        "per call",
        FLAGS,
        [(options("0"), gave(False, 0)), (options("1"), gave(True, 0)), NEW, (options("1"), gave(True, 0))],
        {"FLAG-148": 3, "FLAG-151": 3, "FLAG-152": 1},
    ),
    *(
        (
            f"per call behind one on {platform}",
            FLAGS,
            [(options("1", "7", platform), gave(False, 0)), SEVEN, NEW, SEVEN],
            {"FLAG-147": 1, "FLAG-148": 2, "FLAG-150": 2, "FLAG-152": 1},
        )
        for platform in ("CUDA", "rocm")
    ),
    ("the environment is no option", FLAGS, [(variables("0", "7"), gave(True, 0))], {"FLAG-151": 2}),
]


@pytest.mark.parametrize(("revision", "steps", "witnesses"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_right_histories_have_witnesses_and_no_finding(
    revision: Revision, steps: list[Step], witnesses: dict[str, int]
) -> None:
    verdicts = judge_of(revision, *steps)
    assert verdicts.findings == []
    assert dict(verdicts.witnesses) == witnesses


BAD: list[tuple[str, Revision, list[Step], set[str]]] = [
    ("no gate", BYTES, [(variables(None, None, "CUDA"), gave(True, 0))], {"FLAG-147"}),
    ("the gate raises", AUTO, [(variables(None, None, "CUDA"), RAISED)], {"FLAG-147"}),
    ("junk elsewhere", FLAGS, [(options("junk", None, "CUDA"), gave(True, 0))], {"FLAG-147"}),
    ("refused elsewhere", FLAGS, [(options("1", None, "CUDA"), refused("CUDA"))], {"FLAG-147"}),
    ("any case of ROCM", FLAGS, [(options(None, "7", "rocm"), gave(False, 7))], {"FLAG-147"}),
    ("off is on", BYTES, [(variables("off"), gave(True, 0))], {"FLAG-148"}),
    ("one for true", BYTES, [(variables("on"), gave(1, 0))], {"FLAG-148"}),
    ("junk passes a switch", FLAGS, [(options("junk"), gave(True, 0))], {"FLAG-148"}),
    ("junk raises", BYTES, [(variables(None, "junk"), RAISED)], {"FLAG-149"}),
    ("a variable is refused", AUTO, [(variables(None, "junk"), refused("junk"))], {"FLAG-155"}),
    ("trailing characters", BYTES, [(variables(None, "4M"), gave(True, 4))], {"FLAG-149"}),
    ("trailing blank", BYTES, [(variables(None, "12 "), gave(True, 12))], {"FLAG-149"}),
    ("overflow", BYTES, [(variables(None, "9" * 30), gave(True, 2**64 - 1))], {"FLAG-149"}),
    ("thousands of digits", BYTES, [(variables(None, "9" * 5000), gave(True, 2**64 - 1))], {"FLAG-149"}),
    ("just beyond 64 bits", BYTES, [(variables(None, str(2**64)), gave(True, 2**64))], {"FLAG-149"}),
    ("beyond 64 bits", BYTES, [(variables(None, str(2**64 + 1)), gave(True, 2**64 + 1))], {"FLAG-149"}),
    ("just beyond 63 bits", FLAGS, [(options(None, str(2**63)), gave(True, 2**63))], {"FLAG-150"}),
    ("refuses the least", FLAGS, [(options(None, str(-(2**63))), refused(str(-(2**63))))], {"FLAG-150"}),
    ("underscore", FLAGS, [(options(None, "1_000"), gave(True, 1000))], {"FLAG-150"}),
    ("quotes nothing", FLAGS, [(options(None, "junk"), refused("no integer"))], {"FLAG-150"}),
    ("quotes in part", FLAGS, [(options(None, "f"), refused("bad flag"))], {"FLAG-150"}),
    ("wrong code", FLAGS, [(options(None, "junk"), refused("junk", "INTERNAL"))], {"FLAG-150"}),
    ("another wrong code", FLAGS, [(options(None, "junk"), refused("junk", "UNIMPLEMENTED"))], {"FLAG-150"}),
    ("refuses a good option", FLAGS, [(options("true"), refused("true"))], {"FLAG-148"}),
    ("refuses nothing", FLAGS, [(options(), refused(""))], {"FLAG-151"}),
    ("-1 wraps", BYTES, [(variables(None, "-1"), gave(True, 2**64 - 1))], {"FLAG-149", "FLAG-154"}),
    ("-1 is auto", AUTO, [(variables(None, "-1"), gave(True, "auto"))], {"FLAG-155", "FLAG-154"}),
    ("-1 is cast", FLAGS, [(options(None, "-1"), gave(True, 2**64 - 1))], {"FLAG-150", "FLAG-154"}),
    ("off by default", AUTO, [(variables(), gave(False, "auto"))], {"FLAG-151"}),
    ("one is a byte", AUTO, [(variables(None, "1"), gave(True, 1))], {"FLAG-155"}),
    ("one is auto", BYTES, [(variables(None, "1"), gave(True, "auto"))], {"FLAG-149"}),
    ("no warning", BYTES, [(variables(None, "junk"), gave(True, 0))], {"FLAG-165"}),
    ("warning of another text", BYTES, [(variables(None, "junk"), gave(True, 0, "rubbish, ignored"))], {"FLAG-165"}),
    ("warning of nothing", BYTES, [(variables(), gave(True, 0, "unset"))], {"FLAG-165"}),
    (
        "reads again",
        BYTES,
        [(variables(None, "7"), gave(True, 7)), (variables(None, "8"), gave(True, 8))],
        {"FLAG-152"},
    ),
    (
        "changes by itself",
        BYTES,
        [(variables(None, "7"), gave(True, 7)), (variables(None, "7"), gave(True, 0))],
        {"FLAG-152"},
    ),
    (
        "keeps options",
        FLAGS,
        [(options("0"), gave(False, 0)), (options("1"), gave(False, 0)), NEW, (options("1"), gave(True, 0))],
        {"FLAG-152", "FLAG-148"},
    ),
    (
        "refuses when alone",
        FLAGS,
        [(options("0"), gave(False, 0)), (PLUS, gave(True, 5)), NEW, (PLUS, refused("+5"))],
        {"FLAG-152"},
    ),
]


@pytest.mark.parametrize(("revision", "steps", "findings"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_wrong_histories_break_what_they_should(revision: Revision, steps: list[Step], findings: set[str]) -> None:
    verdicts = judge_of(revision, *steps)
    assert broken(verdicts) == findings
    assert findings <= verdicts.witnesses.keys()


VACUOUS: list[tuple[str, Revision, list[Step], set[str]]] = [
    ("nothing happens", BYTES, [], set()),
    ("no read", BYTES, [NEW, NEW], set()),
    ("off anyway", BYTES, [(variables("0", "0", "CUDA"), gave(False, 0))], {"FLAG-147"}),
    ("refused anyway", FLAGS, [(options("junk", None, "CUDA"), refused("junk"))], {"FLAG-147"}),
    (
        "read twice alike",
        BYTES,
        [(variables("no"), gave(False, 0)), (variables("off"), gave(False, 0))],
        {"FLAG-152"},
    ),
    (
        "another process",
        BYTES,
        [(variables("0"), gave(False, 0)), NEW, (variables(), gave(True, 0))],
        {"FLAG-152"},
    ),
    (
        "options that differ and are not repeated",
        FLAGS,
        [(options("0"), gave(False, 0)), (options("1"), gave(True, 0))],
        {"FLAG-152"},
    ),
    (
        "options that mean the same",
        FLAGS,
        [(options("0"), gave(False, 0)), (options("false"), gave(False, 0)), NEW, (options("false"), gave(False, 0))],
        {"FLAG-152"},
    ),
    (
        "options that may all be refused",
        FLAGS,
        [(options(None, "+7"), refused("+7")), (PLUS, refused("+5")), NEW, (PLUS, refused("+5"))],
        {"FLAG-152"},
    ),
    (
        "settled elsewhere, perhaps",
        BYTES,
        [(variables("0", "0", "CUDA"), gave(False, 0)), (variables(None, "7"), gave(True, 7))],
        {"FLAG-147", "FLAG-149", "FLAG-151", "FLAG-165"},
    ),
    ("zero", BYTES, [(variables(None, "0"), gave(True, 0))], {"FLAG-154", "FLAG-165"}),
    ("no negative number", FLAGS, [(options(None, "1"), gave(True, 1))], {"FLAG-154", "FLAG-165"}),
]


@pytest.mark.parametrize(
    ("revision", "steps", "untested"), [row[1:] for row in VACUOUS], ids=[row[0] for row in VACUOUS]
)
def test_histories_that_test_nothing_have_no_witness(revision: Revision, steps: list[Step], untested: set[str]) -> None:
    verdicts = judge_of(revision, *steps)
    assert verdicts.findings == []
    assert not untested & verdicts.witnesses.keys()
    if not any(note for _, note in steps):
        assert not verdicts.witnesses


def test_a_finding_says_what_was_read_what_was_expected_and_what_came() -> None:
    (finding,) = judge_of(BYTES, (variables("no", "4M"), gave(False, 4))).findings
    assert finding.message == (
        "a read on platform 'ROCM' of skip-remap 'no' and copy threshold '4M' in revision env-bytes: "
        "copy_threshold is wrong"
    )
    assert finding.expected == "copy_threshold=0"
    assert finding.actual == "skip_remap=False, copy_threshold=4"
    assert (finding.op, finding.seq) == (0, 1)


def test_a_late_change_names_the_read_that_settled_it() -> None:
    (finding,) = judge_of(BYTES, (variables(None, "7"), gave(True, 7)), (variables(None, "8"), gave(True, 8))).findings
    assert finding.cause == 1
    assert finding.op == 1


def test_a_finding_lists_all_that_would_have_been_right() -> None:
    (finding,) = judge_of(FLAGS, (options(None, "+5"), gave(True, 0))).findings
    assert finding.expected == "copy_threshold=5 or INVALID_ARGUMENT with a message that quotes '+5'"
