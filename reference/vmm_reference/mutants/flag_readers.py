"""Flag readers that get one thing wrong each, to be mixed into the reference's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vmm_conformance.contracts import Code, Settings, SubjectError
from vmm_reference.flags import (
    AUTO,
    OFF_WORDS,
    EnvironmentReader,
    OptionsReader,
    Reader,
    Texts,
    Threshold,
    decimal,
)

UINT64: Final = 2**64


# -- FLAG-147: the platform


class NoGate(Reader):
    """Never asks for the platform."""

    def runs_on(self, platform: str) -> bool:
        return True


class AnyCase(Reader):
    """Takes ``rocm`` for ``ROCM``."""

    def runs_on(self, platform: str) -> bool:
        return platform.upper() == "ROCM"


class Prefix(Reader):
    """Takes every name that begins with ``ROCM``."""

    def runs_on(self, platform: str) -> bool:
        return platform.startswith("ROCM")


# -- FLAG-148: skip-remap


class TwoSpellings(EnvironmentReader):
    """Knows the words in lower and in upper case, and no other."""

    def skip(self, text: str | None) -> bool:
        return text not in {*OFF_WORDS, *(word.upper() for word in OFF_WORDS)}


class EmptyIsOff(EnvironmentReader):
    """An empty variable turns it off."""

    def skip(self, text: str | None) -> bool:
        return text != "" and super().skip(text)


class UnknownIsOff(EnvironmentReader):
    """Only a word for on turns it on."""

    def skip(self, text: str | None) -> bool:
        return not text or text.lower() in {"1", "true", "on", "yes"}


class ZeroOnly(EnvironmentReader):
    """Only 0 turns it off: ``off`` counts as set."""

    def skip(self, text: str | None) -> bool:
        return text != "0"


class FoldsCase(EnvironmentReader):
    """Folds the case of every alphabet, so that a long s is an s."""

    def skip(self, text: str | None) -> bool:
        return (text or "").casefold() not in OFF_WORDS


class BlanksStripped(EnvironmentReader):
    """Strips blanks first, so that `` 0`` is 0."""

    def skip(self, text: str | None) -> bool:
        return super().skip((text or "").strip())


class UnknownSwitchIsOn(OptionsReader):
    """A boolean option with an unknown text is on."""

    def skip(self, text: str | None) -> bool:
        return (text or "true").lower() not in {"false", "0"}


class UnknownSwitchIsOff(OptionsReader):
    """A boolean option with an unknown text is off."""

    def skip(self, text: str | None) -> bool:
        return (text or "true").lower() in {"true", "1"}


class SwitchInLowerCase(OptionsReader):
    """A boolean option is accepted in lower case alone."""

    def skip(self, text: str | None) -> bool:
        if text and text != text.lower():
            raise self.error("skip_remap", text, "true, false, 1 or 0")
        return super().skip(text)


# -- FLAG-149, FLAG-154: the threshold as a variable


class Unchecked(EnvironmentReader):
    """``strtoull`` without a look at where it stopped or at its error: junk is 0, overflow the maximum."""

    def number(self, text: str) -> int | None:
        digits = re.match("[0-9]*", text)
        return min(int(digits[0] or "0"), UINT64 - 1) if digits else 0


class TrailingIgnored(EnvironmentReader):
    """What follows the digits is not looked at."""

    def number(self, text: str) -> int | None:
        digits = re.match("[0-9]+", text)
        return super().number(digits[0] if digits else text)


class Saturates(EnvironmentReader):
    """Overflow is the maximum."""

    def number(self, text: str) -> int | None:
        number = decimal(text)
        return None if number is None else min(number, UINT64 - 1)


class PythonInt(EnvironmentReader):
    """``int`` decides what a number is: underscores, blanks and foreign digits pass."""

    def number(self, text: str) -> int | None:
        try:
            number = int(text)
        except ValueError:
            return None
        return number if 0 <= number < UINT64 else None


class AnyBase(EnvironmentReader):
    """The base is guessed from the text, as ``strtoull`` does with base 0."""

    def number(self, text: str) -> int | None:
        if re.fullmatch("0[xX][0-9a-fA-F]+", text):
            return int(text, 16)
        return int(text, 8) if re.fullmatch("0[0-7]*", text) else super().number(text)


class RaisesOnJunk(EnvironmentReader):
    """Junk ends the process."""

    def number(self, text: str) -> int | None:
        return int(text) if text.isdigit() else super().number(str(float(text)))


class Wraps(EnvironmentReader):
    """``strtoull`` takes a minus and wraps, so -1 is the largest number there is."""

    def number(self, text: str) -> int | None:
        number = decimal(text, "-?[0-9]+")
        return None if number is None or abs(number) >= UINT64 else number % UINT64


class Magnitude(EnvironmentReader):
    """The sign is dropped: -1 is 1."""

    def number(self, text: str) -> int | None:
        return super().number(text.lstrip("-"))


# -- FLAG-155, FLAG-149: what 0, 1 and unset mean


class OneIsAByte(EnvironmentReader):
    """1 is one byte, as in the later revision."""

    def meaning(self, number: int) -> Threshold:
        return number


class OneIsAuto(EnvironmentReader):
    """1 is the automatic choice, as in the earlier revision."""

    def meaning(self, number: int) -> Threshold:
        return AUTO if number == 1 else number


class UnsetIsOff(EnvironmentReader):
    """Without the variable copying is off, as in the later revision."""

    default = 0


class ZeroIsAuto(EnvironmentReader):
    """0 counts as not given."""

    def meaning(self, number: int) -> Threshold:
        return super().meaning(number) or AUTO


class PresenceTest(EnvironmentReader):
    """Any number above 1 merely turns the automatic choice on."""

    def meaning(self, number: int) -> Threshold:
        return AUTO if number else 0


# -- FLAG-165: warnings


class Silent(EnvironmentReader):
    """Drops texts without a word."""

    def warn(self, text: str) -> tuple[str, ...]:
        return ()


class WarnsOfNothing(EnvironmentReader):
    """Warns of a variable that is not even set."""

    def threshold(self, text: str | None) -> tuple[Threshold, tuple[str, ...]]:
        value, warnings = super().threshold(text)
        return value, warnings if text else self.warn("")


# -- FLAG-150: the threshold as an option


class NegativeCast(OptionsReader):
    """The signed option becomes unsigned before it is compared with 0."""

    def threshold(self, text: str | None) -> tuple[Threshold, tuple[str, ...]]:
        number = self.integer(text) if text else 0
        return (number % UINT64, ()) if number is not None else super().threshold(text)


class OverflowWraps(OptionsReader):
    """What does not fit 64 bits loses its upper bits."""

    def integer(self, text: str) -> int | None:
        number = int(text) if re.fullmatch("-?[0-9]+", text) else None
        return None if number is None else (number + UINT64 // 2) % UINT64 - UINT64 // 2


class JunkIsZero(OptionsReader):
    """Text that is no integer is 0, and nobody is told."""

    def integer(self, text: str) -> int | None:
        return super().integer(text) or 0


class PythonIntOption(OptionsReader):
    """``int`` decides what an integer is."""

    def integer(self, text: str) -> int | None:
        return int(text) if re.fullmatch(r"-?[\d_]+", text) else super().integer(text)


class Unquoted(OptionsReader):
    """The refusal does not say what it refuses."""

    def error(self, name: str, text: str, expected: str) -> SubjectError:
        return SubjectError(Code.INVALID_ARGUMENT, f"option {name}: expected {expected}")


class WrongCode(OptionsReader):
    """The refusal looks like a fault inside."""

    def error(self, name: str, text: str, expected: str) -> SubjectError:
        return SubjectError(Code.INTERNAL, super().error(name, text, expected).message)


# -- FLAG-151: defaults


class OptIn(Reader):
    """Skip-remap has to be asked for."""

    def skip(self, text: str | None) -> bool:
        return text is not None and super().skip(text)


class CopiesByDefault(EnvironmentReader):
    """Copying is on by default, as in the earlier revision."""

    default = AUTO


class OldNameWorks(OptionsReader):
    """The environment still decides where the options are silent."""

    def texts(self, environment: Mapping[str, str], options: Mapping[str, str]) -> Texts:
        skip, threshold = super().texts(environment, options)
        old = environment.get
        return Texts(skip or old("XLA_VMM_SKIP_REMAP"), threshold or old("XLA_VMM_TMP_COPY_THRESHOLD"))


# -- FLAG-152: when texts are read


class ReadsAgain(EnvironmentReader):
    """Looks at the environment in every call."""

    def texts(self, environment: Mapping[str, str], options: Mapping[str, str]) -> Texts:
        return self.look(environment)


class ReadsOptionsOnce(OptionsReader):
    """Keeps the options of the first call."""

    _kept: Texts | None = None

    def texts(self, environment: Mapping[str, str], options: Mapping[str, str]) -> Texts:
        self._kept = self._kept or super().texts(environment, options)
        return self._kept


class ForgetsThreshold(EnvironmentReader):
    """From the second call on the threshold is 0."""

    _calls = 0

    def read(self, platform: str, environment: Mapping[str, str], options: Mapping[str, str]) -> Settings:
        settings = super().read(platform, environment, options)
        self._calls += 1
        return settings if self._calls == 1 else Settings(settings.skip_remap, 0)
