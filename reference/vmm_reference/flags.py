"""How the settings are read from text: three grammars, one per revision.

============  ==========================  =======================================  ====================
revision      skip-remap                  copy threshold in bytes, 0 is off        text of no use
============  ==========================  =======================================  ====================
env-auto      off: 0 false off no         unset, empty, 1: auto; 0; N > 1          0, with a warning
env-bytes     off: 0 false off no         unset, empty: 0; N                       0, with a warning
flags         true 1, false 0             unset: 0; N <= 0: 0; N                   an error that quotes it
============  ==========================  =======================================  ====================

Words in any case. In the environment anything that does not say off leaves skip-remap on (FLAG-148);
it is on by default in every revision (FLAG-151). On other platforms than ROCM both are off (FLAG-147).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from vmm_conformance.contracts import Code, FlagReader, Revision, Settings, SubjectError

Threshold = int | Literal["auto"]
AUTO: Final = "auto"

ROCM: Final = "ROCM"
OFF_WORDS: Final = frozenset({"0", "false", "off", "no"})
SWITCH: Final = {"true": True, "1": True, "false": False, "0": False}
LARGEST_VARIABLE: Final = 2**64 - 1
OPTION_RANGE: Final = range(-(2**63), 2**63)
LONGEST: Final = 20
"""Digits of the largest number in range; ``int`` refuses texts of thousands of digits by itself."""


class Texts(NamedTuple):
    """What is set for either setting; None is unset."""

    skip: str | None
    threshold: str | None


def lower(text: str) -> str:
    """``text`` with its ASCII letters in lower case: other alphabets have no say in a flag."""
    return re.sub("[A-Z]+", lambda letters: letters[0].lower(), text)


def decimal(text: str, pattern: str = "[0-9]+") -> int | None:
    """``text`` as an integer, None if it is not one from end to end.

    Not by ``int`` alone, which takes blanks around the number, underscores, and digits of any alphabet.
    """
    if not re.fullmatch(pattern, text):
        return None
    digits = text.lstrip("-").lstrip("0") or "0"
    value = int(digits) if len(digits) <= LONGEST else 10**LONGEST
    return -value if text.startswith("-") else value


class Reader:
    """Reads settings as one process would. A revision says where texts stand and what they mean."""

    def read(self, platform: str, environment: Mapping[str, str], options: Mapping[str, str]) -> Settings:
        """The settings in force on ``platform``. Raises `SubjectError` for an option of no use."""
        texts = self.texts(environment, options)
        if not self.runs_on(platform):
            return Settings(skip_remap=False, copy_threshold=0)
        threshold, warnings = self.threshold(texts.threshold)
        return Settings(self.skip(texts.skip), threshold, warnings)

    def runs_on(self, platform: str) -> bool:
        """Whether the optimisation is for ``platform``; the name is compared exactly (FLAG-147)."""
        return platform == ROCM

    def texts(self, environment: Mapping[str, str], options: Mapping[str, str]) -> Texts:
        """What is set, as this revision sees it."""
        raise NotImplementedError

    def skip(self, text: str | None) -> bool:
        """What ``text`` says of skip-remap."""
        raise NotImplementedError

    def threshold(self, text: str | None) -> tuple[Threshold, tuple[str, ...]]:
        """What ``text`` says of the copy threshold, and the warnings that this gives cause to."""
        raise NotImplementedError


class EnvironmentReader(Reader):
    """Reads variables, once: what they say at the first read holds for the process (FLAG-152)."""

    default: Threshold
    """The threshold where the variable is unset or empty."""

    def __init__(self) -> None:
        self._read: Texts | None = None

    def texts(self, environment: Mapping[str, str], options: Mapping[str, str]) -> Texts:
        """The variables as they were at the first read."""
        if self._read is None:
            self._read = self.look(environment)
        return self._read

    def look(self, environment: Mapping[str, str]) -> Texts:
        """The variables as they are now."""
        return Texts(environment.get("XLA_VMM_SKIP_REMAP"), environment.get("XLA_VMM_TMP_COPY_THRESHOLD"))

    def skip(self, text: str | None) -> bool:
        """On, unless ``text`` says off (FLAG-148, FLAG-151)."""
        return lower(text or "") not in OFF_WORDS

    def threshold(self, text: str | None) -> tuple[Threshold, tuple[str, ...]]:
        """The number in ``text``; what is none is dropped with a warning (FLAG-149, FLAG-154, FLAG-165)."""
        if not text:
            return self.default, ()
        number = self.number(text)
        if number is None:
            return 0, self.warn(text)
        return self.meaning(number), ()

    def number(self, text: str) -> int | None:
        """A number that is not negative and fits 64 bits; None if ``text`` is none."""
        number = decimal(text)
        return None if number is None or number > LARGEST_VARIABLE else number

    def meaning(self, number: int) -> Threshold:
        """What ``number`` stands for."""
        return number

    def warn(self, text: str) -> tuple[str, ...]:
        """That ``text`` was dropped."""
        return (f"XLA_VMM_TMP_COPY_THRESHOLD={text!r} is not a number of bytes: copying is off",)


class BytesReader(EnvironmentReader):
    """Revision ``env-bytes`` (ROCm/xla#1001, first rounds): every number is a number of bytes."""

    default = 0


class AutoReader(EnvironmentReader):
    """Revision ``env-auto`` (ROCm/xla#926): automatic, unless a number says otherwise (FLAG-155)."""

    default = AUTO

    def meaning(self, number: int) -> Threshold:
        """1 asks for the automatic choice; it is not one byte."""
        return AUTO if number == 1 else number


class OptionsReader(Reader):
    """Revision ``flags`` (ROCm/xla#1001, last round): debug options, looked at in every call (FLAG-152)."""

    def texts(self, environment: Mapping[str, str], options: Mapping[str, str]) -> Texts:
        """The options of this call; the environment has no say. An empty text is as good as none."""
        return Texts(options.get("skip_remap") or None, options.get("copy_threshold_bytes") or None)

    def skip(self, text: str | None) -> bool:
        """On unless ``text`` says off; another text is an error (FLAG-148, FLAG-151)."""
        if text is None:
            return True
        word = lower(text)
        if word not in SWITCH:
            raise self.error("skip_remap", text, "true, false, 1 or 0")
        return SWITCH[word]

    def threshold(self, text: str | None) -> tuple[Threshold, tuple[str, ...]]:
        """The integer in ``text``, 0 for a negative one (FLAG-150, FLAG-154)."""
        if text is None:
            return 0, ()
        number = self.integer(text)
        if number is None:
            raise self.error("copy_threshold_bytes", text, "an integer of 64 bits, in decimal")
        return max(number, 0), ()

    def integer(self, text: str) -> int | None:
        """A signed integer of 64 bits; None if ``text`` is none."""
        number = decimal(text, "-?[0-9]+")
        return None if number is None or number not in OPTION_RANGE else number

    def error(self, name: str, text: str, expected: str) -> SubjectError:
        """The refusal of ``text``."""
        return SubjectError(Code.INVALID_ARGUMENT, f"option {name}={text!r}: expected {expected}")


READERS: Final[Mapping[Revision, type[Reader]]] = {
    Revision.ENV_AUTO: AutoReader,
    Revision.ENV_BYTES: BytesReader,
    Revision.FLAGS: OptionsReader,
}


def flag_reader(revision: Revision) -> FlagReader:
    """A fresh process that speaks ``revision``."""
    return READERS[revision]()
