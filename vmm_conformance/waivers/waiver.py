"""What a waiver says, and what it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion

from vmm_conformance.reporting.parties import DriverInfo, SubjectInfo

FAILURE: Final = "failure"
"""The kind of a waiver for a broken invariant; the others are those of an `Ending`, ``crash`` and ``timeout``."""
DEVICE: Final = "device"
"""Key of a driver's versions under which its device's name is."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """An expected failure: which invariant, of whom, how it fails, why that is borne, and until when.

    ``kind`` is ``failure``, or ``crash`` or ``timeout`` for programs of the invariant's contract that end their
    process; then ``message`` is how and where that ends.
    ``subject``, ``driver``, ``device`` and ``message`` are patterns in which ``*`` stands for anything;
    ``subject_versions`` and the values of ``driver_versions`` are ranges, as in ``>=7.0, <7.3``. It holds up to
    and on the day ``expires``. ``program`` is JSON data of a program that fails as expected, ``file`` where it was.
    """

    invariant: str
    reason: str
    link: str
    expires: date
    subject: str = "*"
    subject_versions: str = ""
    driver: str = "*"
    driver_versions: Mapping[str, str] = field(default_factory=dict)
    device: str = "*"
    message: str = "*"
    kind: str = FAILURE
    file: str = ""
    program: Mapping[str, Any] | None = None

    def covers(self, subject: SubjectInfo, driver: DriverInfo) -> bool:
        """Whether it is about this subject over this driver on this device."""
        versions = driver.versions or {}
        return (
            self.names(subject, driver.name)
            and all(within(versions.get(what, ""), span) for what, span in self.driver_versions.items())
            and (self.device == "*" or like(versions.get(DEVICE, ""), self.device))
        )

    def names(self, subject: SubjectInfo, driver: str) -> bool:
        """The same as far as it can be told without opening the driver."""
        known = any(like(name, self.subject) for name in (subject.spec, subject.name))
        return known and within(subject.version, self.subject_versions) and like(driver, self.driver)

    def accepts(self, message: str) -> bool:
        """Whether a failure that says ``message`` is the one that was expected."""
        return like(message, self.message)

    def excuse(self) -> str:
        """Why a failure is borne, for people."""
        return f"{self.reason} ({self.link}, until {self.expires})"

    def scope(self) -> str:
        """What it is about, in words."""
        ranges = [f"{what} {span}" for what, span in self.driver_versions.items()]
        parts = [
            " ".join(filter(None, ("any subject" if self.subject == "*" else self.subject, self.subject_versions))),
            ", ".join(["any driver" if self.driver == "*" else self.driver, *ranges]),
            *([] if self.device == "*" else [f"device {self.device}"]),
        ]
        return " over ".join(parts[:2]) + "".join(f", {part}" for part in parts[2:])

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON data."""
        return {
            "invariant": self.invariant, "reason": self.reason, "link": self.link, "expires": str(self.expires),
            "subject": self.subject, "subject_versions": self.subject_versions, "driver": self.driver,
            "driver_versions": dict(self.driver_versions), "device": self.device, "message": self.message,
            "kind": self.kind, "file": self.file, "program": None if self.program is None else dict(self.program),
        }  # fmt: skip

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Waiver:
        """The inverse of `as_data`; raises ``ValueError`` for a day or a range that there is not."""
        for span in (data["subject_versions"], *data["driver_versions"].values()):
            SpecifierSet(span)
        return cls(**{**data, "expires": date.fromisoformat(data["expires"])})


def like(text: str, pattern: str) -> bool:
    """Whether ``text`` is ``pattern``, in which ``*`` stands for anything and all else for itself."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def within(version: str, span: str) -> bool:
    """Whether ``version`` lies in the range ``span``; one that is no version lies only in an empty range."""
    if not span:
        return True
    try:
        return SpecifierSet(span, prereleases=True).contains(version)
    except InvalidVersion:
        return False
