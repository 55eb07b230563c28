"""Subjects that make their driver calls by themselves and report them: the calls are judged like any others."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from proc_world import HELLO, PROGRAM, of_the_guide, python, shell

from vmm_conformance.bundling.rerun import installed
from vmm_conformance.drivers.emulated import EmulationUnavailable
from vmm_conformance.drivers.emulated.build import library_path
from vmm_conformance.drivers.emulated.streams import OFFSET
from vmm_conformance.history.events import SUBJECT, Event, History
from vmm_conformance.history.files import event_line
from vmm_conformance.running.ended import Ended
from vmm_conformance.running.explore import generate
from vmm_conformance.running.proc import schema
from vmm_conformance.running.proc.subject import ProcSubject
from vmm_conformance.running.session import Options, bench_for, know, plan, run_item
from vmm_conformance.running.subjects import SubjectNotFound, resolve_subject
from vmm_conformance.sanitizing import inside

OWN = "own"
SPEC = "proc:reported"
ATTEMPT = '        self.give_back(block["address"])\n'
WAITS = '        self.driver.call("stream_synchronize", stream)\n'
TEXT = of_the_guide("told_pool.py").replace(ATTEMPT, WAITS + ATTEMPT)
FREES = '        self.driver.call("address_free", address, committed)\n'
WRONG = {
    "frees before it waits": (WAITS, "", "ALLOCATOR-5", "unmap in deallocate(block 1, stream="),
    "leaks": ("        self.driver.call(\"release\", handle)\n", "", "ALLOCATOR-8", "close leaves behind handle"),
    "frees half": (FREES, FREES.replace("committed", "committed // 2"), "ALLOCATOR-8",
                   "is illegal, and the subject's driver has accepted it"),
    "frees twice": (FREES, 2 * FREES, "ALLOCATOR-8", "is illegal, and the subject's driver has accepted it"),
    "maps beside": ("\"map\", address,", "\"map\", address + GRANULE,", "ALLOCATOR-2", "map(address="),
    "fills what is gone": (FREES, FREES + '        self.driver.call("fill", address, 0, 8, None, result=1)\n',
                           "ALLOCATOR-2", "the subject's own fill touches 0x1000000000+8, of which 8 bytes have no"),
    "no rights": ("[[self.device, 3]]", "[[self.device, 1]]", "ALLOCATOR-2", "cannot be used by device 0"),
}  # fmt: skip


def pool(folder, old="", new=""):
    assert old in TEXT
    return ProcSubject(python(folder / "told_pool.py", TEXT.replace(old, new) if old else TEXT))


def test_reported_calls_are_judged(tmp_path):
    witnesses = set()
    for bench, program in drawn(pool(tmp_path), "allocator", 6):
        judged = bench.run(program)
        assert judged.judge.findings == []
        witnesses |= set(judged.judge.witnesses)
    assert witnesses > {f"ALLOCATOR-{number}" for number in (1, 2, 3, 5, 8)}
    made = [event for event in judged.history if event.who == SUBJECT]
    assert {event.kind for event in made} > {"reserve", "map", "unmap", "stream_synchronize"}
    reported = jsonschema.Draft202012Validator({**schema.subject_schema(), "anyOf": [{"$ref": "#/$defs/made"}]})
    assert not [error for event in made for error in reported.iter_errors(json.loads(event_line(event)))]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_only_reported_calls_show(wrong, tmp_path):
    old, new, invariant, text = WRONG[wrong]
    found = bench_for("allocator", pool(tmp_path, old, new), OWN).run(PROGRAM).broken()
    assert text in found[invariant].message


REACHED = {
    "allocator": {"ALLOCATOR-1", "ALLOCATOR-5", "ALLOCATOR-8"},
    "vmm-allocator": {"ALLOC-44", "ALLOC-53", "ALLOC-74", "ALLOC-76", "ALLOC-183"},
}
SERVED = python(Path(__file__).with_name("served.py"))


def test_the_reference_over_its_own_driver_keeps_every_rule_that_can_be_seen():
    subject = ProcSubject(f"{SERVED} own")
    for contract, reached in REACHED.items():
        judged = [bench.run(program).judge for bench, program in drawn(subject, contract, 8)]
        assert not [finding for judge in judged for finding in judge.findings]
        assert {id for judge in judged for id in judge.witnesses} > reached


def test_a_known_bad_one_over_its_own_driver_is_caught():
    runs = drawn(ProcSubject(f"{SERVED} own alloc-frees-at-once"), "vmm-allocator", 8)
    assert any("ALLOC-44" in bench.run(program).broken() for bench, program in runs)


def drawn(subject, contract, number):
    bench, programs = bench_for(contract, subject, OWN), []
    generate(number, 3, lambda data: programs.append(bench.decode(data, {})))
    return [(bench, program) for program in programs]


def test_what_nobody_tells_is_not_exercised(tmp_path):
    """Nor are contents, which nobody here can read, and failures, which cannot be injected there."""
    report = 'say([0, 0, "subject", kind, arguments, status, result])'
    untold = TEXT.replace(report, "pass").replace('"calls": "reported"', '"calls": "untold"')
    subject = ProcSubject(python(tmp_path / "told_pool.py", untold))
    know(SPEC, subject)
    items = plan({SPEC: subject}, Options("smoke", driver=OWN))
    assert {item.kind for item in items} == {"exploration", "scenario"}
    result = run_item(next(item for item in items if "same-stream-again" in item.id), Options("smoke", driver=OWN))
    assert (result.state, result.failures) == ("done", [])
    assert result.untested["ALLOCATOR-5"] == "no trace"
    assert result.untested["ALLOCATOR-4"] == "contents are not read in another process"
    assert result.witnesses.keys() >= {"ALLOCATOR-1", "ALLOCATOR-3"}
    assert subject.missing("host") == "told-pool makes its driver calls by itself: use the driver own"
    section = {"subject": {"spec": SPEC, "name": "told-pool", "version": "1"}}
    assert installed(section, {"name": OWN}, (SPEC,)) == (subject, "")  # so a bundle can be verified


def test_one_that_has_promised_to_report_and_asks():
    said = json.dumps({"return": {"name": "x", "contracts": ["allocator"], "calls": "reported", "device": {}}})
    stream = """read create; echo '{"return": 7}'; """ * 3
    opened = f"read start; echo '{said}'; {stream}read open; echo '{{\"call\": \"mem_info\"}}'; sleep 100"
    with pytest.raises(Ended, match="asked for a driver call, though it says that its driver calls are reported"):
        bench_for("allocator", ProcSubject(shell(opened)), OWN).run(PROGRAM)
    nameless = shell(f"read start; echo '{said}'; read create; echo '{{\"return\": \"first\"}}'; sleep 100")
    with pytest.raises(Ended, match="returned 'first' for stream_create, where a number was expected"):
        bench_for("allocator", ProcSubject(nameless), OWN).run(PROGRAM)


def test_calls_on_an_emulated_library_are_reported_for_it():
    try:
        library_path("cuda")
    except EmulationUnavailable as error:
        pytest.skip(str(error))
    command = python(Path(__file__).with_name("cuda_pool.py"))
    subject = resolve_subject(f"proc,emulate=cuda:{command} early leaks")
    judged = bench_for("allocator", subject, OWN).run(PROGRAM)
    found = {id: finding.message for id, finding in judged.broken().items()}
    assert set(found) == {"ALLOCATOR-5", "ALLOCATOR-8"}
    assert "close leaves behind handle" in found["ALLOCATOR-8"]


def test_what_is_reported_names_streams_as_the_program_does_and_an_emulation_that_breaks_ends_it(monkeypatch, capfd):
    library = SimpleNamespace(failures=[])
    watch = SimpleNamespace(
        history=History(), recorder=SimpleNamespace(now=SimpleNamespace(seen=None)), library=library
    )
    inside.report_calls(watch)
    watch.recorder.now.seen(Event(7, -1, 0, SUBJECT, "stream_create", (0,), 0, 3))
    watch.recorder.now.seen(Event(8, -1, 0, SUBJECT, "copy", (1, 2, 3, None), 700))
    assert capfd.readouterr().out.splitlines() == [
        f'[-1,0,"subject","stream_create",[0],0,{3 + OFFSET}]', '[-1,0,"subject","copy",[1,2,3,null],700,null]',
    ]  # fmt: skip
    monkeypatch.setattr("os._exit", lambda status: (_ for _ in ()).throw(SystemExit(status)))
    library.failures.append(KeyError("cuMemMap"))
    with pytest.raises(SystemExit):
        watch.recorder.now.seen(Event(9, -1, 0, SUBJECT, "stream_synchronize", (3,)))
    assert "the emulation broke, which is our fault: KeyError: 'cuMemMap'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (f"proc,emulate=cuda:{shell(HELLO + 'sleep 100')}", "on an emulated library its driver calls are reported, it"),
        ("proc,emulate=metal:sh", "emulate=metal is unknown; accepted: cuda, hip"),
        ("proc,quirk=Q-01:sh", "proc takes emulate=cuda or emulate=hip, and :COMMAND behind it"),
    ],
)
def test_a_spec_that_cannot_be_says_so(spec, message, monkeypatch):
    monkeypatch.setattr("vmm_conformance.drivers.emulated.build.library_path", lambda vendor: None)
    with pytest.raises(SubjectNotFound, match=message):
        resolve_subject(spec)
