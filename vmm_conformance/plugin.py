"""The pytest plugin: options, marker, fixtures, and the report at the end.

Every pytest run of a user loads this module, so it imports neither Hypothesis nor a suite nor a driver;
the functions import what they need when they are first used.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from vmm_conformance.invocation import OPTIONS, BadInvocation, Invocation, gather, make_importable
from vmm_conformance.pytest_keys import INVOCATION, RESULT, WIDTH
from vmm_conformance.width import terminal_width

if TYPE_CHECKING:
    from vmm_conformance.contracts import Driver
    from vmm_conformance.pytest_devices import Lending
    from vmm_conformance.pytest_items import SuiteItem
    from vmm_conformance.pytest_progress import Controller
    from vmm_conformance.pytest_recorded import Recorded, Run

LENDING = "vmm-conformance-devices"
"""The plugin that lends devices to workers."""
_HAS_DEVICES = re.compile(r"(emulated-)?(hip|cuda)(,|$)")
_ATTRIBUTE = "vmm_result"
_WIDTH = "vmm_width"
_MARKER = (
    "vmm(contract='allocator', invariants=(), options=None): for the fixtures vmm_host, vmm_recorded and vmm_run:"
    " the contract whose checkers judge, the invariants to look at (default: all), the driver's DriverOptions"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--vmm-...`` and the ini keys ``vmm_...``."""
    group = parser.getgroup("vmm-conformance", "conformance of GPU virtual-memory allocators (vmm-conformance)")
    for option in OPTIONS:
        group.addoption(f"--vmm-{option.name}", dest=option.ini, **option.arguments())
        kind = "linelist" if option.many else "string"
        parser.addini(option.ini, option.help, type=kind, default=None)  # type: ignore[arg-type]


def pytest_configure(config: pytest.Config) -> None:
    """Read and check what was asked for; on the controller, listen for results."""
    config.addinivalue_line("markers", _MARKER)
    config.stash[WIDTH] = config.workerinput[_WIDTH] if _is_worker(config) else terminal_width()  # type: ignore[attr-defined]
    try:
        invocation, here = _asked(config)
        config.stash[INVOCATION] = invocation
        if here and not _is_worker(config):
            make_importable(config.invocation_params.dir)
            invocation.check()
    except BadInvocation as error:
        raise pytest.UsageError(str(error)) from None
    _devices(config, _lent(invocation))
    if not _is_worker(config):
        config.pluginmanager.register(Listener(config), "vmm-conformance-listener")


def _asked(config: pytest.Config) -> tuple[Invocation, bool]:
    """What was asked for, and whether any of it outside an ini file. Raises `BadInvocation`."""
    command_line = {option.name: config.getoption(option.ini) for option in OPTIONS}
    return gather(command_line, os.environ, {option.name: config.getini(option.ini) for option in OPTIONS})


def _devices(config: pytest.Config, driver: str) -> None:
    """On the controller of workers, lend devices; on a worker, use the one that was lent, and no other."""
    if not driver or not (_is_worker(config) or config.getoption("tx", None)):
        return
    from vmm_conformance.pytest_devices import INDEX, Lending, use

    if not _is_worker(config):
        count = _count(driver)
        if count:
            config.pluginmanager.register(Lending(driver, count), LENDING)
    elif INDEX in config.workerinput:  # type: ignore[attr-defined]
        use(driver, config.workerinput[INDEX])  # type: ignore[attr-defined]


def _lent(invocation: Invocation) -> str:
    """The driver whose devices are lent: what subjects allocate from, or a subject itself; empty if none has any."""
    return next((name for name in (invocation.driver, *invocation.subjects) if _HAS_DEVICES.match(name)), "")


def _count(driver: str) -> int:
    """How many devices of a driver there are to lend; of one that means nothing, which is told elsewhere, none."""
    if not driver:
        return 0
    from vmm_conformance.drivers.opening import device_count

    try:
        return device_count(driver)
    except ValueError:
        return 0


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """As many workers as there are devices, for ``-n auto``; without devices, what xdist thinks."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    try:
        return _count(_lent(_asked(config)[0])) or None
    except BadInvocation as error:
        raise pytest.UsageError(str(error)) from None


def pytest_unconfigure() -> None:
    """End the child process that ran programs, if there is one: of a controller as of a worker."""
    session = sys.modules.get("vmm_conformance.running.session")
    if session is not None:
        session.end_children()


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests that take ``vmm_item`` over everything that was asked for."""
    if "vmm_item" not in metafunc.fixturenames:
        return
    from vmm_conformance.pytest_items import planned

    make_importable(metafunc.config.invocation_params.dir)
    try:
        items = planned(metafunc.config.stash[INVOCATION])
    except BadInvocation as error:  # from an ini file: other tests may run
        raise pytest.Collector.CollectError(str(error)) from None
    metafunc.parametrize("vmm_item", items, ids=[item.id for item in items], indirect=True)


@pytest.fixture
def vmm_item(request: pytest.FixtureRequest) -> SuiteItem:
    """One item of the suites; ``vmm_item.check()`` runs it, and fails the test for a broken must."""
    from vmm_conformance.pytest_items import SuiteItem

    return SuiteItem(request.param, request.config.stash[INVOCATION], request.node)


@pytest.fixture
def vmm_host(request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A fresh host driver, closed after the test. The marker's ``options`` are a `DriverOptions`."""
    from vmm_conformance.pytest_recorded import Expectation, open_host

    driver = open_host(Expectation.of(request.node).options)
    yield driver
    driver.close()


@pytest.fixture
def vmm_recorded(request: pytest.FixtureRequest, vmm_host: Driver) -> Iterator[Recorded]:
    """A recorded host driver: give ``.driver`` to your code, then ask ``.findings()``."""
    from vmm_conformance.pytest_recorded import Expectation, Recorded

    recorded = Recorded(vmm_host, Expectation.of(request.node))
    yield recorded
    recorded.stop()


@pytest.fixture
def vmm_run(request: pytest.FixtureRequest) -> Run:
    """``vmm_run(program, subject)``: run a program, or the JSON file of one, and get the findings."""
    from vmm_conformance.pytest_recorded import Expectation, Run

    return Run(Expectation.of(request.node))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Let an item's result travel with its test report, from a worker to the controller too."""
    report = yield
    if call.when == "call" and RESULT in item.stash:
        setattr(report, _ATTRIBUTE, item.stash[RESULT])
    return report


class Listener:
    """Collects the results of a session's items, and reports on them at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.results: list[dict[str, Any]] = []
        self.suspects: list[str] = []
        self.candidates: set[str] = set()
        self.lines: list[str] = []
        self.started = time.monotonic()
        self.controller: Controller | None = None

    def add(self, result: dict[str, Any]) -> None:
        """Take one result."""
        self.results.append(result)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the result out of a test report; one without a result may have crashed its worker."""
        result = getattr(report, _ATTRIBUTE, None)
        if result is not None:
            self.add(result)
        elif report.failed:
            self.suspects.append(_parameter(report.nodeid))

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Remember what could have been run, deselected or not."""
        if "vmm_item" in getattr(item, "fixturenames", ()):
            self.candidates.add(_parameter(item.nodeid))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker where to say how far it is."""
        from vmm_conformance.pytest_progress import FOLDER, Controller

        if self.controller is None:
            self.controller = Controller(self.config)
        node.workerinput[FOLDER] = str(self.controller.folder)
        node.workerinput[_WIDTH] = self.config.stash[WIDTH]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker is gone, whichever way."""
        if self.controller is not None:
            self.controller.gone(node.gateway.id)

    def pytest_unconfigure(self) -> None:
        """Progress ends with the session, however that ended."""
        if self.controller is not None:
            self.controller.stop()
            self.controller = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """The same for what workers collected."""
        self.candidates.update(_parameter(id) for id in ids if "/" in _parameter(id))
        if self.controller is not None and self.candidates:
            self.controller.start()

    def pytest_keyboard_interrupt(self) -> None:
        """Under xdist, ask the workers to stop: what they have under way is to be kept."""
        if self.controller is not None:
            self.controller.interrupt()

    @pytest.hookimpl(trylast=True)  # when workers have come down
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Build the report; a run without failures that is not conformant exits 1."""
        for result in self.controller.left() if self.controller is not None else ():
            self.add(result)
        if self.config.stash[INVOCATION].replay or not (self.results or self.candidates):
            return
        from vmm_conformance.pytest_items import Session

        own = Session(self.config.stash[INVOCATION])
        if not self.results and not own.concerns(self.candidates):
            return
        lending: Lending | None = self.config.pluginmanager.get_plugin(LENDING)
        devices = lending.had if lending is not None else {}
        report = own.report(self.results, self.suspects, time.monotonic() - self.started, devices)
        self.lines = own.publish(report, self.config.stash[WIDTH])
        if session.exitstatus == pytest.ExitCode.OK and report.exit_code:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the summary."""
        if self.lines:
            terminalreporter.section("vmm-conformance")
            for line in self.lines:
                terminalreporter.write_line(line)


def _parameter(nodeid: str) -> str:
    """The part of a node id in brackets: for our tests, the item's id."""
    return nodeid.partition("[")[2].removesuffix("]")
