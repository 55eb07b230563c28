"""The oracle of the contract ``flags``: what each text may come to, by revision.

Written from the grammars alone and apart from any reader. A text is sorted into unset, empty, number or
junk; the tables say what follows. Where the sources leave a text open, several outcomes are allowed:

- a number after blanks or a ``+`` (C's ``strtoull`` takes it, the written grammar does not name it);
- in revision ``flags`` also blanks behind it, and an empty text (unset, or no value);
- integers from 2**63 (the settings are signed in some revisions) below 2**64.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from vmm_conformance.contracts import Revision

AUTO: Final = "auto"
INT64: Final = range(-(2**63), 2**63)
UINT64_END: Final = 2**64
_BLANKS = "[ \t\n\v\f\r]*"
_NUMBER: Final = re.compile(f"({_BLANKS})([+-]?)([0-9]+)({_BLANKS})")

SKIP_OFF: Final = ("0", "false", "off", "no")
"""Words that turn skip-remap off in the environment, in any case; all else leaves it on (FLAG-148)."""

SWITCH: Final = {"true": True, "1": True, "false": False, "0": False}
"""What the debug option skip_remap accepts, in any case (FLAG-148)."""

SOURCES: Final = {
    Revision.ENV_AUTO: ("environment", "XLA_VMM_SKIP_REMAP", "XLA_VMM_TMP_COPY_THRESHOLD"),
    Revision.ENV_BYTES: ("environment", "XLA_VMM_SKIP_REMAP", "XLA_VMM_TMP_COPY_THRESHOLD"),
    Revision.FLAGS: ("options", "skip_remap", "copy_threshold_bytes"),
}
"""Where a revision looks: which mapping, the name for skip-remap, the name for the copy threshold."""

THRESHOLD_RULE: Final = {
    Revision.ENV_AUTO: "FLAG-155",
    Revision.ENV_BYTES: "FLAG-149",
    Revision.FLAGS: "FLAG-150",
}


class Allowed(NamedTuple):
    """What one setting may come to: one of ``values``, or with ``refusal`` an error that quotes it."""

    values: tuple[bool | int | str, ...]
    refusal: bool = False

    def holds(self, value: object) -> bool:
        """Whether ``value`` is one of the values, of the same type (1 is not True)."""
        return any(type(value) is type(each) and value == each for each in self.values)


class Texts(NamedTuple):
    """The texts that a read finds; None is unset."""

    skip_remap: str | None
    copy_threshold: str | None


class Expected(NamedTuple):
    """What both settings of one read may come to."""

    skip_remap: Allowed
    copy_threshold: Allowed

    @property
    def can_refuse(self) -> bool:
        """Whether the read may be refused."""
        return self.skip_remap.refusal or self.copy_threshold.refusal

    @property
    def must_refuse(self) -> bool:
        """Whether the read has to be refused."""
        return not (self.skip_remap.values and self.copy_threshold.values)

    def excludes(self, other: Expected) -> bool:
        """Whether no outcome is allowed by both."""
        if self.can_refuse and other.can_refuse:
            return False
        return any(not any(a.holds(value) for value in b.values) for a, b in zip(self, other, strict=True))


OFF: Final = Expected(Allowed((False,)), Allowed((0,)))
"""What every platform but ROCM gets (FLAG-147)."""


class Number(NamedTuple):
    """A text that is a decimal integer: ``bare`` without blanks and plus, ``open_end`` with blanks behind."""

    value: int
    bare: bool
    open_end: bool


def number(text: str) -> Number | None:
    """``text`` as a number, or None if it is none. Only the digits 0 to 9 count."""
    match = _NUMBER.fullmatch(text)
    if not match:
        return None
    before, sign, digits, behind = match.groups()
    value = int(digits.lstrip("0")[:40] or "0")  # 40 digits are beyond every edge as much as more
    return Number(-value if sign == "-" else value, not before and not behind and sign != "+", bool(behind))


def ascii_lower(text: str) -> str:
    """``text`` with A to Z in lower case, and no other letter changed."""
    return "".join(chr(ord(each) + 32) if "A" <= each <= "Z" else each for each in text)


def is_negative(text: str | None) -> bool:
    """Whether ``text`` is a number below zero."""
    found = number(text) if text else None
    return found is not None and found.value < 0


@lru_cache(4096)
def expected(revision: Revision, texts: Texts) -> Expected:
    """What a read of ``texts`` on ROCM may come to."""
    if revision is Revision.FLAGS:
        return Expected(_switch(texts.skip_remap), _option(texts.copy_threshold))
    skip = Allowed((ascii_lower(texts.skip_remap or "") not in SKIP_OFF,))
    return Expected(skip, _variable(revision, texts.copy_threshold))


def _switch(text: str | None) -> Allowed:
    if not text:
        return Allowed((True,), refusal=text is not None)
    word = ascii_lower(text)
    return Allowed((SWITCH[word],)) if word in SWITCH else Allowed((), refusal=True)


def _option(text: str | None) -> Allowed:
    if not text:
        return Allowed((0,), refusal=text is not None)
    found = number(text)
    if found is None or found.value >= INT64.stop:
        return Allowed((), refusal=True)
    return Allowed((max(found.value, 0),), refusal=not found.bare or found.value not in INT64)


def _variable(revision: Revision, text: str | None) -> Allowed:
    auto = revision is Revision.ENV_AUTO
    if not text:
        return Allowed((AUTO if auto else 0,))
    found = number(text)
    if found is None or found.open_end or found.value < 0 or found.value >= UINT64_END:
        return Allowed((0,))
    exact = AUTO if auto and found.value == 1 else found.value
    return Allowed((exact,) if found.bare and found.value in INT64 else (exact, 0))


def is_dropped(text: str | None, value: object) -> bool:
    """Whether a variable held ``text`` and ``value`` came of dropping it, so that a warning is due."""
    if not text or value != 0:
        return False
    found = number(text)
    return found is None or found.open_end or found.value != 0


def rule(revision: Revision, setting: str, text: str | None) -> str:
    """The invariant that says what ``text`` comes to."""
    if setting == "copy_threshold" and (text is not None or revision is Revision.ENV_AUTO):
        return THRESHOLD_RULE[revision]
    return "FLAG-151" if text is None else "FLAG-148"
