"""What the plugin does once a suite is really asked for: plan items, run them, report on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from vmm_conformance.catalogue import catalogue
from vmm_conformance.interrupts import Interrupts
from vmm_conformance.invocation import Invocation
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.pytest_keys import RESULT, WIDTH
from vmm_conformance.pytest_progress import Here, There, progress_of
from vmm_conformance.replaying import REPLAY, replay_items, replayed
from vmm_conformance.reporting.conclusion import complaint, decisive, describe, driver_info, publish, scene
from vmm_conformance.reporting.ended import told as ended_told
from vmm_conformance.reporting.endings import describe_ending
from vmm_conformance.reporting.model import Report
from vmm_conformance.reporting.parties import SubjectInfo
from vmm_conformance.reporting.report import build
from vmm_conformance.reporting.screen import Scene
from vmm_conformance.reporting.terminal import summary
from vmm_conformance.running.results import ALL, UNAVAILABLE, ItemResult
from vmm_conformance.running.session import Item, part, run_item
from vmm_conformance.waivers.listed import KIND as WAIVER
from vmm_conformance.waivers.listed import Waivers
from vmm_conformance.waivers.listed import planned as planned_items

PROGRESS = pytest.StashKey[Here | There | None]()
WAIVERS = pytest.StashKey[Waivers | None]()


def planned(invocation: Invocation) -> Sequence[Item]:
    """Every item of the run. Raises `BadInvocation` for something that does not exist."""
    invocation.check()
    if invocation.replay:
        return replay_items(invocation)
    options = invocation.options()
    return part(planned_items(invocation.subject_objects(), options, invocation.waiver_objects()), options)


class SuiteItem:
    """One item of the suites, as a test sees it."""

    def __init__(self, item: Item, invocation: Invocation, node: pytest.Item) -> None:
        self.item = item
        self._invocation = invocation
        self._node = node

    @property
    def id(self) -> str:
        """The item's id, which does not depend on where the test file lies."""
        return self.item.id

    def run(self) -> ItemResult:
        """Run it. The result becomes part of the session's report, and its ids properties of the test."""
        with Interrupts() as interrupts:
            result = self._result(interrupts)
        if progress := self._node.config.stash.get(PROGRESS, None):
            progress.finished(failure.invariant for failure in result.failures)
        self._node.stash[RESULT] = result.to_json()
        self._node.user_properties += _properties(self.item, result)
        if result.state == "stopped" or interrupts.seen:
            _hand_over(self._node, result)
            raise KeyboardInterrupt
        return result

    def _result(self, interrupts: Interrupts) -> ItemResult:
        if self.item.kind != REPLAY:
            return run_item(self.item, self._invocation.options(), progress=self._watched(interrupts))
        assert isinstance(self.item.part, Scenario)
        return replayed(self.item.part.program, self.item.subject_spec, self._subject, self._invocation)

    def _watched(self, interrupts: Interrupts) -> Callable[[int, int, int], None]:
        """What is to happen after each program."""
        stash, session = self._node.config.stash, self._node.session
        if PROGRESS not in stash:
            stash[PROGRESS] = progress_of(self._node.config, session.items)
        progress = stash[PROGRESS]
        if progress is None:
            return interrupts.check
        progress.tally.label = self.item.id

        def after(done: int, planned: int, broken: int) -> None:
            interrupts.check()
            progress.programs(done, planned, broken)

        return after

    @property
    def _subject(self) -> object:
        return self._invocation.subject_objects()[self.item.subject_spec]

    def check(self) -> None:
        """Run it, and fail the test if a must is broken, the subject crashed or a checker broke.

        Where there is no such driver here it is skipped, with what is missing as the reason.

        A replay fails for any finding. Where nothing is broken but what waivers expect it is an expected failure.
        """
        result = self.run()
        if result.state == UNAVAILABLE:
            pytest.skip(result.untested[ALL])
        asked, width = self._invocation, self._node.config.stash[WIDTH]
        where = scene(self.item.subject_spec, self._subject, driver=asked.driver, seed=asked.seed)
        excuse = ""
        if self.item.kind == REPLAY:
            text = "\n".join(_replay_lines(result, str(asked.replay), where, width))
        else:
            counted = decisive(catalogue(), prefix=asked.invariant, hardened=asked.hardened)
            result, excuse = self._excused(result)
            text = complaint(result, counted, catalogue(), where, asked.report, width)
        if text:
            pytest.fail(text, pytrace=False)
        if excuse:
            pytest.xfail(excuse)
        if self.item.kind == WAIVER and result.state == "done":
            pytest.fail("the program of a waiver does not fail as it says; the summary says how", pytrace=False)

    def _excused(self, result: ItemResult) -> tuple[ItemResult, str]:
        """``result`` without what waivers expect, and what is to be said of that."""
        stash = self._node.config.stash
        if WAIVERS not in stash:
            stash[WAIVERS] = self._invocation.waiver_objects()
        waivers = stash[WAIVERS]
        if waivers is None or not (result.failures or result.endings):
            return result, ""
        about = SubjectInfo.of(self.item.subject_spec, self._subject)
        result, used = waivers.excused(result, about, driver_info(self.item.driver))
        return result, "; ".join(f"{waiver.invariant} waived: {waiver.excuse()}" for waiver in used)


def _replay_lines(result: ItemResult, file: str, where: Scene, width: int) -> list[str]:
    files = dict.fromkeys((failure.invariant for failure in result.failures), file)
    lines = describe(result.failures, catalogue(), where, files, width)
    for ending in result.endings:
        lines += describe_ending(ending, result.item, file, where.spec, where.driver, width)
    return lines


def _properties(item: Item, result: ItemResult) -> list[tuple[str, object]]:
    """What pytest's own JUnit file is to say of a test."""
    broken = sorted({failure.invariant for failure in result.failures})
    return [
        ("vmm_item", item.id),
        ("vmm_contract", item.contract),
        ("vmm_subject", item.subject_spec),
        ("vmm_invariants", " ".join(sorted(id for id, count in result.witnesses.items() if count))),
        *([("vmm_broken", " ".join(broken))] if broken else []),
        *((f"vmm_{ending.kind}", ended_told(ending)) for ending in result.endings),
    ]


def _hand_over(node: pytest.Item, result: ItemResult) -> None:
    """Give a stopped item's result to the listener, or leave it for the controller's: no test report carries it."""
    listener = node.config.pluginmanager.get_plugin("vmm-conformance-listener")
    progress = node.config.stash.get(PROGRESS, None)
    if listener is not None:
        listener.add(result.to_json())
    elif isinstance(progress, There):
        progress.leave(result.to_json())


class Session:
    """The report on a pytest session."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.subjects = invocation.subject_objects()
        self.waivers = invocation.waiver_objects()
        self.items = planned_items(self.subjects, invocation.options(), self.waivers)

    def concerns(self, names: Iterable[str]) -> bool:
        """Whether any of ``names``, the parameters of collected tests, is an item of the plan."""
        ids = {item.id for item in self.items}
        return any(name in ids for name in names)

    def report(
        self, results: Iterable[dict[str, Any]], suspects: Iterable[str], seconds: float, devices: Mapping[str, str]
    ) -> Report:
        """The report; an item among ``suspects`` whose result never arrived has crashed.

        ``devices`` are those that workers were lent, by worker.
        """
        arrived = [ItemResult.from_json(result) for result in results]
        known = {result.item for result in arrived}
        lost = [_crashed(item) for item in self.items if item.id in set(suspects) - known]
        options = self.invocation.options()
        return build(
            [*arrived, *lost],
            self.items,
            options,
            self.subjects,
            catalogue(),
            driver=driver_info(options.driver),
            waivers=self.waivers,
            seconds=seconds,
            devices=devices,
        )

    def publish(self, report: Report, width: int) -> list[str]:
        """Write the files; returns the summary, in ``width`` columns."""
        return summary(report, directory=publish(report, self.invocation.report), width=width)


def _crashed(item: Item) -> ItemResult:
    return ItemResult(item.id, item.kind, item.contract, item.subject_spec, item.driver, item.planned, state="crash")
