"""What is said between harness and subject: the schema, and the same calls as in one process."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import jsonschema
import pytest
from proc_world import GUIDE, PROGRAM, far_pool

from vmm_conformance.contracts import (
    SUBJECT_CAPABILITIES,
    Access,
    Block,
    Code,
    DriverError,
    DriverOptions,
    Status,
    SubjectError,
)
from vmm_conformance.contracts.allocator import WholeAllocator
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.invocation import BadInvocation, gather
from vmm_conformance.running.explore import generate
from vmm_conformance.running.proc import schema
from vmm_conformance.running.proc.allocator import ProcAllocator
from vmm_conformance.running.proc.messages import CALLS, REQUESTS, Unfit, carry_out, parse, refusal
from vmm_conformance.running.proc.process import SubjectProcess
from vmm_conformance.running.proc.subject import _DECLARED, ProcSubject
from vmm_conformance.running.session import bench_for

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
        lines.append(("subject", message))
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


@pytest.mark.parametrize("command", [far_pool, in_javascript], ids=["python", "javascript"])
def test_programs_come_to_the_same_as_in_one_process_and_every_line_is_in_the_schema(command, tmp_path, heard):
    here, there = bench_for("allocator", pool_of_readme()), bench_for("allocator", ProcSubject(command(tmp_path)))
    for program in drawn(here, 8):
        near, far = here.run(program), there.run(program)
        assert calls(far.history) == calls(near.history)
        assert far.judge.findings == near.judge.findings == []
        assert far.judge.witnesses == near.judge.witnesses
    for who, message in {json.dumps(line): line for line in heard}.values():
        assert list(FROM[who].iter_errors(message)) == []
    assert {next(iter(message)) for _, message in heard} == {"do", "return", "call", "error", "refuse"}


def test_one_process_serves_all_programs(tmp_path):
    subject = ProcSubject(far_pool(tmp_path))
    bench = bench_for("allocator", subject)
    process = subject._process
    bench.run(PROGRAM)
    bench.run(PROGRAM)
    assert subject._process is process
    assert (subject.name, subject.version, subject.capabilities) == ("far-pool", "1", {"grow": False})


def test_the_schema_that_ships_is_the_one_of_the_code():
    assert schema.PATH.read_text("utf-8") == schema.text()
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "line",
    [
        {"call": "launch"}, {"call": "reserve"}, {"call": "reserve", "size": "1"}, {"return": {"address": 1}},
        {"refuse": 3}, {"call": "reserve", "size": 1, "flags": 0}, {"return": None, "refuse": "ABORTED"},
        {"return": {"name": "x", "contracts": ["driver"]}},
    ],
)  # fmt: skip
def test_the_schema_refuses(line):
    assert not FROM["subject"].is_valid(line)


def test_every_part_of_the_contract_can_be_asked_for():
    asked = {name for name in vars(WholeAllocator) | vars(WholeAllocator.__mro__[1]) if not name.startswith("_")}
    assert asked == set(REQUESTS) - {"start", "open"}
    said = []
    allocator = ProcAllocator(lambda do, **arguments: said.append((do, tuple(arguments))))
    block = Block(1, 2, 3)
    allocator.allocate(1, stream=2)
    allocator.deallocate(block, stream=2)
    allocator.grow(block, 5, stream=2)
    allocator.shrink(block, 1, stream=2)
    allocator.trim()
    allocator.pause(backup=True)
    allocator.resume()
    allocator.enable_peer(1)
    allocator.statistics()
    allocator.begin_capture(stream=2)
    allocator.end_capture(stream=2)
    allocator.drop_capture(stream=2)
    allocator.close()
    keys = {do: tuple(key for key in keys if key != "allocator") for do, keys in REQUESTS.items()}
    assert {do: sorted(given) for do, given in said} == {do: sorted(keys[do]) for do in asked}


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


def test_an_unknown_refusal():
    with pytest.raises(Unfit, match="refused allocate with 'FULL', which is no code; there are INVALID_ARGUMENT, "):
        refusal("allocate", {"refuse": "FULL"})


def test_several_subjects_in_a_variable_are_quoted_as_in_a_shell():
    invocation, _ = gather({}, {"VMM_SUBJECT": "reference 'proc:python x.py'"})
    assert invocation.subjects == ("reference", "proc:python x.py")
    with pytest.raises(BadInvocation, match="subject cannot be split into words: No closing quotation"):
        gather({}, {"VMM_SUBJECT": "'proc:python x.py"})
