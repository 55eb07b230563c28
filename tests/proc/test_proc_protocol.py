"""What is said between harness and subject: the schema, and the same calls as in one process."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from proc_world import GUIDE, PROGRAM, far_pool, python

from vmm_conformance.contracts import (
    CONTRACTS,
    SUBJECT_CAPABILITIES,
    Access,
    Block,
    Code,
    DriverError,
    DriverOptions,
    Status,
    SubjectError,
    contracts_of,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import Event
from vmm_conformance.history.files import event_line
from vmm_conformance.invocation import BadInvocation, gather
from vmm_conformance.running.explore import generate
from vmm_conformance.running.proc import schema
from vmm_conformance.running.proc.described import _DECLARED
from vmm_conformance.running.proc.messages import CALLS, Unfit, carry_out, parse, refusal
from vmm_conformance.running.proc.process import SubjectProcess
from vmm_conformance.running.proc.remote import Remote
from vmm_conformance.running.proc.spoken import REQUESTS, SPOKEN
from vmm_conformance.running.proc.subject import ProcSubject
from vmm_conformance.running.session import bench_for
from vmm_conformance.running.step_run import StepRun
from vmm_reference.subject import reference

SCHEMA = schema.subject_schema()
FROM = {who: jsonschema.Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": f"#/$defs/from {who}"}]})
        for who in ("harness", "subject")}  # fmt: skip


@pytest.fixture
def heard(monkeypatch):
    """Every line that is said, with who said it."""
    lines = []
    send, receive = SubjectProcess.send, SubjectProcess.receive

    def sent(self, message, patience):
        lines.append(("harness", json.loads(json.dumps(message))))
        send(self, message, patience)

    def received(self, patience):
        message = receive(self, patience)
        lines.append(("subject", json.loads(event_line(message)) if isinstance(message, Event) else message))
        return message

    monkeypatch.setattr(SubjectProcess, "send", sent)
    monkeypatch.setattr(SubjectProcess, "receive", received)
    return lines


def pool_of_readme():
    """The README's allocator: the same as the guide's, in this process."""
    text = (GUIDE.parents[2] / "README.md").read_text("utf-8")
    names = {}
    exec(re.search(r"<!-- file: my_pool.py -->\n```python\n(.*?)```", text, re.DOTALL)[1], names)
    return names["pool"]


def calls(history):
    """What was asked of the driver and what came of it, whatever the addresses and handles are."""
    return [(event.op, event.who, event.kind, event.status, event.result == "injected") for event in history]


def drawn(bench, number):
    programs = []
    generate(number, 3, lambda data: programs.append(bench.decode(data, {})))
    return programs


def in_javascript(folder):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    return f"node {shlex.quote(str(Path(__file__).with_name('far_pool.js')))}"


def same(near, far, number, contract="allocator"):
    """Programs with many kinds of operations come to the same on ``far`` as on ``near``, which is in this process."""
    here, there = bench_for(contract, near), bench_for(contract, far)
    for program in sorted(drawn(here, 40), key=lambda program: len(set(map(type, program.operations))))[-number:]:
        one, two = here.run(program), there.run(program)
        assert calls(two.history) == calls(one.history)
        assert two.judge.findings == one.judge.findings == []
        assert two.judge.witnesses == one.judge.witnesses


def all_in_the_schema(heard):
    for who, message in {json.dumps(line): line for line in heard}.values():
        assert list(FROM[who].iter_errors(message)) == []


@pytest.mark.parametrize("command", [far_pool, in_javascript], ids=["python", "javascript"])
def test_programs_come_to_the_same_as_in_one_process_and_every_line_is_in_the_schema(command, tmp_path, heard):
    same(pool_of_readme(), ProcSubject(command(tmp_path)), 8)
    all_in_the_schema(heard)
    assert {next(iter(message)) for _, message in heard} == {"do", "return", "call", "error", "refuse"}


def test_the_reference_comes_to_the_same_in_every_contract_that_can_be_spoken(heard, monkeypatch):
    """But for its locks, which cannot be seen there: no step challenges another."""
    far = ProcSubject(python(Path(__file__).with_name("served.py")))
    assert contracts_of(far) == tuple(SPOKEN)
    factories = {CONTRACTS[name]: getattr(reference, CONTRACTS[name]) for name in SPOKEN}
    near = SimpleNamespace(capabilities={**reference.capabilities, "scheduled": False}, **factories)
    monkeypatch.setattr(StepRun, "_challenge", lambda *_: None)
    for contract in SPOKEN:
        same(near, far, 2, contract)
    all_in_the_schema(heard)
    asked = {message["do"] for who, message in heard if who == "harness" and "do" in message}
    assert asked > {"map", "device_tag", "device_tag_end", "create_reservation", "raw_allocation", "step"}


def test_one_process_serves_all_programs(tmp_path):
    subject = ProcSubject(far_pool(tmp_path))
    bench = bench_for("allocator", subject)
    process = subject._process
    bench.run(PROGRAM)
    bench.run(PROGRAM)
    assert subject._process is process
    assert (subject.name, subject.version) == ("far-pool", "1")
    assert subject.capabilities == {"grow": False, "waits": ("deallocate",)}


def test_the_schema_that_ships_is_the_one_of_the_code():
    assert schema.PATH.read_text("utf-8") == schema.text()
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "line",
    [
        {"call": "launch"}, {"call": "reserve"}, {"call": "reserve", "size": "1"}, {"return": {"address": 1}},
        {"refuse": 3}, {"call": "reserve", "size": 1, "flags": 0}, {"return": None, "refuse": "ABORTED"},
        {"return": {"name": "x", "contracts": ["driver"]}}, [0, 0, "subject", "note", [], 0, None],
        [0, 0, "harness", "unmap", [1, 1], 0, None],
    ],
)  # fmt: skip
def test_the_schema_refuses(line):
    assert not FROM["subject"].is_valid(line)


def test_requests_are_the_methods_of_the_contract():
    assert REQUESTS["allocator"]["allocate"] == ("allocator", "size", "stream", "space")
    assert REQUESTS["skip-remap"] == {
        "open": ("step_executor", "executable"),
        "step": ("step_executor", "buffers", "device", "stream"),
        "close": ("step_executor",),
    }
    said = []
    allocator = Remote(lambda do, callbacks, **given: said.append((do, given)), "allocator")
    allocator.allocate(1, stream=2)
    allocator.grow(Block(1, 2, 3), 5, stream=2)
    grown = {"block": {"address": 1, "size": 2, "committed": 3}, "size": 5, "stream": 2}
    assert said == [("allocate", {"size": 1, "stream": 2, "space": 0}), ("grow", grown)]
    with pytest.raises(AttributeError, match="an object of the contract allocator has no 'remap'"):
        allocator.remap()
    with pytest.raises(TypeError, match="missing a required argument: 'stream'"):
        allocator.allocate(1)


def test_what_may_be_declared_is_what_the_contract_knows():
    declared = set(SCHEMA["$defs"]["described"]["properties"]["capabilities"]["properties"])
    assert declared < set(SUBJECT_CAPABILITIES)
    assert declared == set(_DECLARED)


@pytest.fixture
def driver():
    made = HostDriver(DriverOptions(devices=2))
    yield made
    made.close()


def made(driver, call, **arguments):
    return carry_out(parse(json.dumps({"call": call, **arguments}).encode()), driver)


def test_driver_calls(driver):
    assert made(driver, "granularity") == {"return": {"minimum": 4096, "recommended": 4096}}
    assert made(driver, "can_access_peer", device=0, peer=1) == {"return": True}
    address = made(driver, "reserve", size=4096)["return"]
    handle = made(driver, "create", size=4096, device=1)["return"]
    assert made(driver, "map", address=address, size=4096, handle=handle) == {"return": None}
    assert made(driver, "set_access", address=address, size=4096, rights=[[0, 1], [1, 3]]) == {"return": None}
    assert made(driver, "get_access", address=address, device=0) == {"return": Access.READ}
    assert made(driver, "write", target=address, data="00ff10") == {"return": None}
    assert made(driver, "read", source=address, size=3) == {"return": "00ff10"}
    assert made(driver, "address_range", address=address + 5) == {"return": {"address": address, "size": 4096}}
    refused = made(driver, "address_free", address=address, size=4096)
    assert (refused["error"], refused["status"]) == ("INVALID_VALUE", Status.INVALID_VALUE)
    stream, event = made(driver, "stream_create")["return"], made(driver, "event_create")["return"]
    assert made(driver, "fill", target=address, value=1, size=4096, stream=stream) == {"return": None}
    assert made(driver, "event_record", event=event, stream=stream) == {"return": None}
    assert made(driver, "event_query", event=event) == {"return": False}
    assert set(CALLS) > {"alloc", "free", "retain", "mem_info", "copy", "device_synchronize"}


def test_a_driver_that_breaks_is_told_to_the_subject(driver, monkeypatch):
    monkeypatch.setattr(type(driver), "mem_info", lambda *_, **__: 1 / 0)
    assert made(driver, "mem_info") == {"error": "ZeroDivisionError", "status": -1, "message": "division by zero"}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (rb'{"return": "cut \ud83d"}', "cut ?"),
        (b'{"return": "cut \xed\xa0\xbd"}', "cut ?"),
        (rb'{"return": "whole \ud83d\ude00"}', "whole \N{GRINNING FACE}"),
    ],
)
def test_a_text_that_was_cut_inside_a_character_can_be_written_down(line, text):
    assert parse(line) == {"return": text}


@pytest.mark.parametrize(
    ("code", "kind", "told"),
    [
        ("RESOURCE_EXHAUSTED", SubjectError, Code.RESOURCE_EXHAUSTED),
        ("OUT_OF_MEMORY", DriverError, Status.OUT_OF_MEMORY),
        ("status 4711", DriverError, 4711),
    ],
)
def test_refusals(code, kind, told):
    error = refusal("allocate", {"refuse": code, "message": "no"})
    assert type(error) is kind
    assert getattr(error, "code", None) == told or getattr(error, "status", None) == told


@pytest.mark.parametrize("code", ["FULL", "status " + "9" * 5000])
def test_an_unknown_refusal(code):
    said = f"refused allocate with '{code[:30]}.*, which is no code; there are INVALID_ARGUMENT, "
    with pytest.raises(Unfit, match=said):
        refusal("allocate", {"refuse": code})


def test_several_subjects_in_a_variable_are_quoted_as_in_a_shell():
    invocation, _ = gather({}, {"VMM_SUBJECT": "reference 'proc:python x.py'"})
    assert invocation.subjects == ("reference", "proc:python x.py")
    with pytest.raises(BadInvocation, match="subject cannot be split into words: No closing quotation"):
        gather({}, {"VMM_SUBJECT": "'proc:python x.py"})
