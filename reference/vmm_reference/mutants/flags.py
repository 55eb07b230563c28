"""Known-bad flag readers."""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import FlagReader, Mutant, Revision
from vmm_reference.flags import READERS, Reader
from vmm_reference.mutants import flag_readers as wrong

AUTO: Final = (Revision.ENV_AUTO,)
BYTES: Final = (Revision.ENV_BYTES,)
ALL: Final = tuple(Revision)


class FlagMutant:
    """A subject whose readers are the reference's with ``changes`` mixed in where they fit.

    A change made for the environment leaves the options alone, and the other way round; ``revisions``
    narrows it further.
    """

    def __init__(self, name: str, changes: type[Reader], revisions: tuple[Revision, ...]) -> None:
        self.name = name
        self._readers: dict[Revision, type[Reader]] = {}
        for revision, reader in READERS.items():
            fits = revision in revisions and issubclass(reader, changes.__base__ or Reader)
            self._readers[revision] = type(name, (changes, reader), {}) if fits else reader

    def flags(self, revision: Revision) -> FlagReader:
        """A fresh wrong reader."""
        return self._readers[revision]()


def _mutant(
    name: str,
    changes: type[Reader],
    *breaks: str,
    revisions: tuple[Revision, ...] = ALL,
    finding: str = "",
) -> Mutant:
    """The mutant ``flags-name``; ``finding`` is the number of a review finding of ROCm/xla#1001."""
    identity = f"flags-{name}"
    note = (changes.__doc__ or "").strip()
    source = f"ROCm/xla#1001 {finding}" if finding else ""
    return Mutant(identity, "flags", breaks, FlagMutant(identity, changes, revisions), note, source)


MUTANTS: Final[tuple[Mutant, ...]] = (
    _mutant("no-platform-gate", wrong.NoGate, "FLAG-147"),
    _mutant("platform-any-case", wrong.AnyCase, "FLAG-147"),
    _mutant("platform-prefix", wrong.Prefix, "FLAG-147"),
    _mutant("off-in-two-spellings", wrong.TwoSpellings, "FLAG-148", finding="F6"),
    _mutant("empty-is-off", wrong.EmptyIsOff, "FLAG-148", finding="F13"),
    _mutant("unknown-is-off", wrong.UnknownIsOff, "FLAG-148"),
    _mutant("only-zero-is-off", wrong.ZeroOnly, "FLAG-148"),
    _mutant("folds-all-alphabets", wrong.FoldsCase, "FLAG-148"),
    _mutant("skip-strips-blanks", wrong.BlanksStripped, "FLAG-148"),
    _mutant("unknown-switch-is-on", wrong.UnknownSwitchIsOn, "FLAG-148"),
    _mutant("unknown-switch-is-off", wrong.UnknownSwitchIsOff, "FLAG-148"),
    _mutant("switch-in-lower-case", wrong.SwitchInLowerCase, "FLAG-148"),
    _mutant("unchecked-parse", wrong.Unchecked, "FLAG-149", "FLAG-155", "FLAG-165", finding="F3"),
    _mutant("trailing-ignored", wrong.TrailingIgnored, "FLAG-149", "FLAG-155", "FLAG-165"),
    _mutant("overflow-saturates", wrong.Saturates, "FLAG-149", "FLAG-155"),
    _mutant("python-int", wrong.PythonInt, "FLAG-149", "FLAG-155"),
    _mutant("any-base", wrong.AnyBase, "FLAG-149", "FLAG-155"),
    _mutant("junk-raises", wrong.RaisesOnJunk, "FLAG-149", "FLAG-155"),
    _mutant("bytes-one-is-auto", wrong.OneIsAuto, "FLAG-149", revisions=BYTES),
    _mutant("negative-cast", wrong.NegativeCast, "FLAG-150", "FLAG-154"),
    _mutant("option-overflow-wraps", wrong.OverflowWraps, "FLAG-150"),
    _mutant("option-junk-is-zero", wrong.JunkIsZero, "FLAG-150"),
    _mutant("option-python-int", wrong.PythonIntOption, "FLAG-150"),
    _mutant("error-without-text", wrong.Unquoted, "FLAG-150", "FLAG-148"),
    _mutant("error-with-wrong-code", wrong.WrongCode, "FLAG-150", "FLAG-148"),
    _mutant("skip-is-opt-in", wrong.OptIn, "FLAG-151", finding="F4"),
    _mutant("copies-by-default", wrong.CopiesByDefault, "FLAG-151", "FLAG-149", revisions=BYTES),
    _mutant("environment-behind-options", wrong.OldNameWorks, "FLAG-151", "FLAG-148", "FLAG-150"),
    _mutant("reads-again", wrong.ReadsAgain, "FLAG-152"),
    _mutant("options-read-once", wrong.ReadsOptionsOnce, "FLAG-152", "FLAG-148", "FLAG-150", "FLAG-151", "FLAG-154"),
    _mutant("forgets-threshold", wrong.ForgetsThreshold, "FLAG-152"),
    _mutant("negative-wraps", wrong.Wraps, "FLAG-154", "FLAG-149", "FLAG-155"),
    _mutant("negative-magnitude", wrong.Magnitude, "FLAG-154", "FLAG-149", "FLAG-155"),
    _mutant("auto-one-is-a-byte", wrong.OneIsAByte, "FLAG-155", revisions=AUTO),
    _mutant("auto-unset-is-off", wrong.UnsetIsOff, "FLAG-155", revisions=AUTO),
    _mutant("auto-zero-is-auto", wrong.ZeroIsAuto, "FLAG-155", revisions=AUTO),
    _mutant("auto-presence-test", wrong.PresenceTest, "FLAG-155", revisions=AUTO),
    _mutant("drops-silently", wrong.Silent, "FLAG-165"),
    _mutant("warns-of-nothing", wrong.WarnsOfNothing, "FLAG-165"),
)
