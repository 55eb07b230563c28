"""The drivers over the vendors' bindings, on the emulated libraries: the same suites, without findings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from adapter_world import EMULATED, need, open_driver

from vmm_conformance.catalogue import catalogue
from vmm_conformance.cli import main
from vmm_conformance.contracts import (
    Access,
    Copy,
    DriverError,
    DriverOptions,
    Fault,
    Live,
    Range,
    Status,
    Work,
    Write,
)
from vmm_conformance.drivers.calls import DriverUnavailable
from vmm_conformance.drivers.emulated.adapted import emulated_driver
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.drivers.opening import device_count, facts, opener, parse
from vmm_conformance.drivers.subjects import DriverSubject
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.running.explore import generate
from vmm_conformance.running.probe import probe
from vmm_conformance.running.session import bench_for, resolve_known
from vmm_conformance.running.subjects import unavailable
from vmm_suites.scenarios.driver import SCENARIOS

G: Final = 4096


@pytest.fixture(params=EMULATED)
def name(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


# -- the suites


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_a_scenario_of_the_driver_suite_has_no_findings(name: str, scenario: Scenario) -> None:
    judged = bench_for("driver", DriverSubject(name)).run(scenario.program)
    assert judged.judge.findings == []
    possible = set(scenario.exercises) - set(judged.history.header["not_applicable"])
    assert [id for id in possible if not judged.judge.witnesses[id]] == []
    assert judged.history.header["real"] is False


def test_the_driver_suite_has_no_findings_and_tests_every_must(name: str) -> None:
    bench = bench_for("driver", DriverSubject(name))
    witnesses: Counter[str] = Counter()

    def consume(data: bytes) -> None:
        judged = bench.run(bench.plug.decode(data, {}))
        assert judged.judge.findings == []
        witnesses.update(judged.judge.witnesses)

    generate(150, 0, consume)
    for scenario in SCENARIOS:
        witnesses.update(bench.run(scenario.program).judge.witnesses)
    assert {entry.id for entry in catalogue().of("driver") if entry.level == "must"} <= set(witnesses)


@pytest.mark.parametrize("contract", ["allocator", "skip-remap"])
def test_a_conformant_subject_is_conformant_on_it(name: str, contract: str) -> None:
    bench = bench_for(contract, resolve_known("reference"), name)

    def consume(data: bytes) -> None:
        assert bench.run(bench.plug.decode(data, {})).judge.findings == []

    generate(30, 0, consume)


def test_a_report_says_that_nothing_was_real(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--subject", name, "--driver", name, "--budget", "smoke", "--invariant", "DRIVER-1"]
    main([*arguments, "--report", str(tmp_path)])
    capsys.readouterr()
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert (report["driver"]["name"], report["driver"]["real"]) == (name, False)
    binding = {"emulated-hip": "hip-python", "emulated-cuda": "cuda-bindings"}[name]
    assert report["driver"]["versions"][binding]
    assert report["driver"]["versions"]["library"].startswith("emulated lib")
    subject = report["subjects"][0]["subject"]
    assert subject["real"] is False
    assert f"{binding} {report['driver']['versions'][binding]}" in subject["version"]


# -- the driver


@pytest.fixture
def driver(name: str) -> Any:
    made = open_driver(name, devices=2)
    yield made
    made.close()
    assert made.refusals == []


def _mapped(driver: Any, device: int = 0) -> tuple[int, int]:
    address, handle = driver.reserve(G), driver.create(G, device=device)
    driver.map(address, G, handle)
    driver.set_access(address, G, {0: Access.READ_WRITE, 1: Access.READ_WRITE})
    return address, handle


def test_what_it_is(driver: Any, name: str) -> None:
    assert (driver.name, driver.real, driver.device_count) == (name, False, 2)
    assert not driver.capabilities.progress
    assert driver.progress(driver.stream_create()) == 0
    assert driver.granularity(1) == (G, G)
    assert driver.space_alignment(0, 5) == 4096
    assert driver.can_access_peer(0, 1)
    assert not driver.can_access_peer(1, 1)
    assert driver.live() == Live(0, 0, 0, 0, 0)


def test_addresses_handles_and_streams_are_plain_integers(driver: Any) -> None:
    address, handle = _mapped(driver)
    plain, stream, event = driver.alloc(100), driver.stream_create(), driver.event_create()
    for value in (address, handle, plain, stream, event, driver.retain(address + 9)):
        assert type(value) is int
    assert driver.retain(address) == handle
    assert driver.address_range(address + 9) == Range(address, G)
    assert driver.address_range(plain + 9) == Range(plain, 100)
    assert driver.get_access(address, 1) is Access.READ_WRITE


def test_what_is_refused_has_the_contracts_name_and_the_vendors_status(driver: Any) -> None:
    address, _ = _mapped(driver)
    for call, status, do in (
        ("unmap", Status.INVALID_VALUE, lambda: driver.unmap(address, G // 2)),
        ("create", Status.OUT_OF_MEMORY, lambda: driver.create(1 << 40)),
        ("create", Status.INVALID_DEVICE, lambda: driver.create(G, device=2)),
        ("create", Status.INVALID_VALUE, lambda: driver.create(G, space=9)),
        ("set_access", Status.INVALID_VALUE, lambda: driver.set_access(address, G, {0: 7})),
        ("set_access", Status.INVALID_VALUE, lambda: driver.set_access(address, G, {})),
        ("read", Status.INVALID_VALUE, lambda: driver.read(address + G, 8)),
        ("stream_synchronize", Status.INVALID_HANDLE, lambda: driver.stream_synchronize(1 << 20)),
        ("graph_launch", Status.INVALID_HANDLE, lambda: driver.graph_launch(1 << 20, driver.stream_create())),
    ):
        with pytest.raises(DriverError) as raised:
            do()
        assert (raised.value.call, raised.value.status) == (call, status)


def test_work_of_the_host_is_done_at_once(driver: Any) -> None:
    address, _ = _mapped(driver, device=1)
    plain = driver.alloc(64, device=0)
    assert driver.write(address, b"0123456789").done
    assert driver.copy(plain, address, 10).done
    assert driver.fill(plain, 65, 2).done
    assert driver.read(plain, 10).data == (b"AA23456789",)
    work = driver.launch(None, reads=[Range(plain, 2)], copies=[Copy(plain, address, 2)], writes=[Write(address, b"z")])
    assert (work.data, driver.read(plain, 2).data, driver.read(address, 2).data) == ((b"AA",), (b"01",), (b"z1",))


def test_queued_work_is_done_when_it_was_waited_for(driver: Any) -> None:
    address, _ = _mapped(driver)
    stream, told = driver.stream_create(), list[Work]()
    driver.listen(told.append)
    works = [
        driver.write(address, b"abcdef", stream=stream),
        driver.copy(address + 6, address, 3, stream=stream),
        driver.fill(address, 33, 1, stream=stream),
        driver.launch(stream, reads=[Range(address, 2), Range(address + 6, 3)], writes=[Write(address, b"?")]),
        driver.read(address, 3, stream=stream),
    ]
    assert not any(work.done for work in works)
    driver.stream_synchronize(stream)
    assert told == works
    assert [work.data for work in works] == [(), (), (), (b"!b", b"abc"), (b"?bc",)]


def test_a_fault_is_the_works_own(driver: Any) -> None:
    address, _ = _mapped(driver)
    stream = driver.stream_create()
    good = driver.fill(address, 1, 8, stream=stream)
    bad = driver.read(address, 8, stream=stream)
    driver.stream_query(stream)  # runs the first
    driver.unmap(address, G)
    cause = driver.serial
    driver.stream_synchronize(stream)
    assert (good.fault, bad.data) == (None, ())
    assert bad.fault == Fault(address, 8, "unmapped", cause)


def test_graphs_keep_addresses_and_read_anew(driver: Any) -> None:
    address, _ = _mapped(driver)
    stream = driver.stream_create()
    driver.graph_begin(stream)
    assert not driver.write(address, b"#", stream=stream).done
    driver.read(address, 4, stream=stream)
    graph = driver.graph_end(stream)
    executable = driver.graph_instantiate(graph)
    driver.graph_destroy(graph)
    driver.write(address, b"abcd")
    first = driver.graph_launch(executable, stream)
    driver.write(address + 2, b"X", stream=stream)
    second = driver.graph_launch(executable, stream)
    driver.stream_synchronize(stream)
    assert (first.data, second.data) == ((b"#bcd",), (b"#bXd",))
    driver.graph_exec_destroy(executable)


def test_events_order_streams(driver: Any) -> None:
    address, _ = _mapped(driver)
    one, two, event = driver.stream_create(0), driver.stream_create(1), driver.event_create(0)
    assert driver.event_query(event)
    driver.fill(address, 65, 1, stream=one)
    driver.event_record(event, one)
    driver.stream_wait_event(two, event)
    seen = driver.read(address, 1, stream=two)
    assert not driver.event_query(event)
    driver.stream_synchronize(two)
    assert seen.data == (b"A",)
    driver.event_synchronize(event)
    driver.event_destroy(event)


def test_a_status_that_the_binding_has_no_name_for_survives(name: str) -> None:
    class Strange(HostDriver):
        def reserve(self, size: int, *, alignment: int = 0, hint: int = 0) -> int:
            raise DriverError(4711, "reserve", "strange")

    driver = emulated_driver(name.removeprefix("emulated-"), Strange)(DriverOptions())
    with pytest.raises(DriverError) as raised:
        driver.reserve(G)
    assert (raised.value.status, raised.value.call) == (4711, "reserve")
    driver.close()


def test_it_has_what_it_declares_and_no_more(name: str) -> None:
    found = probe(opener(name))
    assert [tried.name for tried in found.capabilities if not tried.kept] == []
    assert "sharing" in [tried.name for tried in found.capabilities if tried.declared]


def test_there_is_one_of_each_at_a_time(name: str) -> None:
    first = open_driver(name)
    with pytest.raises(DriverUnavailable, match=f"another driver '{name}' is open in this process"):
        open_driver(name)
    first.close()
    open_driver(name).close()


def test_a_closed_driver_has_given_everything_back_and_answers_no_more(name: str) -> None:
    driver = open_driver(name, devices=2)
    _mapped(driver)
    driver.alloc(100)
    driver.fill(driver.alloc(8), 1, 8, stream=driver.stream_create())
    under = driver.under
    held: list[Live] = []
    close = under.close
    under.close = lambda: (held.append(under.live()), close())  # type: ignore[func-returns-value]
    driver.close()
    assert held == [Live(0, 0, 0, 0, 0)]
    assert driver.refusals == []
    with pytest.raises(DriverError, match="NOT_INITIALIZED"):
        driver.reserve(G)


def test_the_plain_driver_of_a_vendor_knows_an_emulated_library(name: str) -> None:
    library = open_driver(name).library
    library_driver = HostDriver(DriverOptions())
    library.start(library_driver)
    driver: Any = opener(name.removeprefix("emulated-"))(DriverOptions())
    assert (driver.name, driver.real) == (name.removeprefix("emulated-"), False)
    with pytest.raises(DriverError, match="does not tell what it holds"):
        driver.live()
    driver.close()
    library.stop()
    library_driver.close()


_HOLDING = """
import sys
from threading import Thread
from vmm_conformance.drivers.emulated.library import load
from vmm_conformance.drivers.opening import calls_of
from vmm_conformance.drivers.queues import Gate

load(sys.argv[1])
calls, gate = calls_of(sys.argv[1]), Gate()
calls.use(0)
stream = calls.stream_create()
calls.host_function(gate.function, gate.data, stream)
waiting = Thread(target=calls.stream_synchronize, args=(stream,))
waiting.start()
waiting.join(0.1)
print("held", waiting.is_alive())
gate.open()
waiting.join()
"""


def test_a_stream_is_held_without_the_interpreters_lock(name: str) -> None:
    command = [sys.executable, "-c", _HOLDING, name.removeprefix("emulated-")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "held True\n"), done.stderr


# -- names, and what is missing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpu", "unknown driver 'tpu'; accepted: host, hip, cuda, emulated-hip, emulated-cuda"),
        ("host,speed=9", "driver 'host,speed=9': host takes quirk=ID, not 'speed=9'"),
        ("cuda,quirk=Q-01", "driver 'cuda,quirk=Q-01': cuda takes memory=SIZE, as in memory=4G, not 'quirk=Q-01'"),
        ("hip,memory=4g", "driver 'hip,memory=4g': hip takes memory=SIZE, as in memory=4G, not 'memory=4g'"),
        ("host,devices=2", "driver 'host,devices=2': host takes quirk=ID, not 'devices=2'"),
        (
            "emulated-hip,devices=0",
            "driver 'emulated-hip,devices=0': emulated-hip takes quirk=ID, devices=NUMBER and memory=SIZE, as in"
            " memory=4G, not 'devices=0'",
        ),
        ("host,quirk=Q-77", "unknown quirk 'Q-77'; accepted: Q-01, "),
        ("host,quirk=Q-26", "quirk Q-26 cannot be had on a host driver: "),
    ],
)
def test_names_that_mean_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
        parse(text)
    assert str(raised.value).startswith(message)


def test_an_emulated_machine_has_the_devices_that_it_was_given_and_the_variables_show(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "CUDA_VISIBLE_DEVICES" if name == "emulated-cuda" else "HIP_VISIBLE_DEVICES"
    for shown, expected in ((None, 3), ("2,0", 2), ("1", 1)):
        monkeypatch.setenv(variable, shown) if shown else monkeypatch.delenv(variable, raising=False)
        driver = opener(f"{name},devices=3")(DriverOptions(devices=4))
        assert (driver.device_count, device_count(f"{name},devices=3")) == (expected, expected)
        driver.close()
    monkeypatch.setenv(variable, "7")
    with pytest.raises(DriverUnavailable, match=r"devices=3' finds no device; is one visible to this process\?"):
        opener(f"{name},devices=3")(DriverOptions())


def test_no_more_of_a_device_is_taken_than_was_said(name: str) -> None:
    driver = opener(f"{name},memory=16M")(DriverOptions(capacity=64 << 20))
    assert driver.mem_info() == (16 << 20, 64 << 20)
    with pytest.raises(DriverError) as raised:
        driver.create((16 << 20) + G)
    assert raised.value.status == Status.OUT_OF_MEMORY
    driver.create(16 << 20)
    assert driver.mem_info() == (0, 64 << 20)
    driver.close()


def test_sizes_are_read_with_their_units() -> None:
    sizes = [parse(f"cuda,memory={text}").memory for text in ("4096", "3K", "2M", "1G", "1T")]
    assert sizes == [4096, 3 << 10, 2 << 20, 1 << 30, 1 << 40]


_HIDDEN = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), "-1")
_MISSING = "from vmm_conformance.drivers.opening import facts; print(facts({!r}).missing)"


@pytest.mark.parametrize(("name", "library"), [("hip", "ROCm's libamdhip64.so"), ("cuda", "NVIDIA's libcuda.so.1")])
def test_without_a_gpu_it_says_what_is_missing(name: str, library: str) -> None:
    need(f"emulated-{name}")
    command = [sys.executable, "-c", _MISSING.format(name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | _HIDDEN)
    if "finds no usable" not in done.stdout:  # where there is the vendor's library, with its devices hidden
        assert f"the driver '{name}' needs {library}, which cannot be loaded" in done.stdout
        assert f"--vmm-driver emulated-{name}" in done.stdout


@pytest.mark.parametrize(("name", "module"), [("hip", "hip"), ("cuda", "cuda.bindings.driver")])
def test_without_a_binding_it_says_what_to_install(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DriverUnavailable, match=rf"pip install 'vmm-conformance\[{name}\]'"):
        opener(name)(DriverOptions())


def test_a_suite_without_its_driver_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent(DriverSubject):
        @property
        def facts(self) -> Any:
            return facts("host").__class__("hip", True, "needs ROCm")

    assert unavailable(Absent("host"), "host") == "needs ROCm"
    assert unavailable(object(), "host") == ""


_ROCM = """
import os
from vmm_conformance.drivers import emulated
library = emulated.load("hip")
print(str(library.path.parent.parent) == os.environ["ROCM_PATH"])
from vmm_conformance.drivers.opening import facts
print(facts("emulated-hip").missing)
"""


def test_a_rocm_that_is_installed_does_not_get_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("emulated-hip")
    library = tmp_path / "lib" / "libamdhip64.so"
    library.parent.mkdir()
    library.write_bytes(b"not a library, and never to be opened")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))

    done = subprocess.run([sys.executable, "-c", _ROCM], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n\n", "")
