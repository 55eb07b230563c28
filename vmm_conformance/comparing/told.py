"""What changed from one report to another, as lines for a terminal: what got worse comes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmm_conformance.comparing.diff import Change, Diff, Kind, Program, Setting, SubjectDiff, counted
from vmm_conformance.reporting.text import clip, count, few, wrap

PROGRAMS_SHOWN = 8


def as_lines(diff: Diff, width: int = 80) -> list[str]:
    """The subjects, those that got worse first; then versions; what it comes to in the last line."""
    lines = [f"{diff.before} -> {diff.after}"]
    for subject in sorted(diff.subjects, key=lambda subject: not subject.worse):
        lines += ["", *_subject(subject, width)]
    if diff.settings:
        lines += ["", "versions and options", *(line for each in diff.settings for line in _setting(each, width))]
    return [*lines, "", _conclusion(diff)]


def _subject(subject: SubjectDiff, width: int) -> Iterator[str]:
    before, after = subject.before or "not there", subject.after or "not there"
    yield f"{subject.name} ({subject.spec}): " + (after if before == after else f"{before} -> {after}")
    if subject.incomplete:
        yield "  no longer complete: something that was shown before was not"
    for kind in Kind:
        changes = [change for change in subject.changes if change.kind is kind]
        if changes:
            yield f"  {kind.value}"
            yield from _each(changes, width) if kind.worse else _together(changes, width)
    yield from _programs(subject.programs, width)


def _each(changes: Sequence[Change], width: int) -> Iterator[str]:
    for change in changes:
        detail = f": {change.detail}" if change.detail else ""
        yield clip(f"{change.id} {_step(change)}{detail}", width, indent=4)


def _together(changes: Sequence[Change], width: int) -> Iterator[str]:
    for step in dict.fromkeys(map(_step, changes)):
        ids = [change.id for change in changes if _step(change) == step]
        yield from wrap(f"{few(ids, 10)} {step}", width, indent=" " * 4)


def _step(change: Change) -> str:
    return f"{change.before or 'not there'} -> {change.after or 'not there'}"


def _programs(programs: Sequence[Program], width: int) -> Iterator[str]:
    if programs:
        yield "  failing programs that are new"
    for program in programs[:PROGRAMS_SHOWN]:
        yield f"    {program.file}  ({count(program.operations, 'operation')})"
    if len(programs) > PROGRAMS_SHOWN:
        yield f"    and {len(programs) - PROGRAMS_SHOWN} more"


def _setting(setting: Setting, width: int) -> list[str]:
    text = f"{setting.what}: {setting.before or 'none'} -> {setting.after or 'none'}"
    return wrap(text, width, indent="  ", hang="    ", lines=3)


def _conclusion(diff: Diff) -> str:
    worse, other = (counted(diff.subjects, worse=worse) for worse in (True, False))
    if not diff.worse:
        return f"nothing got worse{f': {other}' if other else ''}"
    gone = [subject.spec for subject in diff.subjects if not subject.after]
    sunk = [subject.spec for subject in diff.subjects if subject.sunk and subject.after]
    told = (worse, f"the verdict on {few(sunk)}" if sunk else "", f"{few(gone)} gone" if gone else "")
    parts = [part for part in told if part]
    return f"worse: {'; '.join(parts)}" + (f" (and {other})" if other else "")
