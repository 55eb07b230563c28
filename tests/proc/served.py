"""A program that serves the reference over lines: the one side of ``proc:`` for every contract, over any subject.

``python served.py``: it asks for its driver calls. ``python served.py own``: it has a driver, and reports its calls.
A further word is the known-bad variant that is served in place of the reference.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from types import SimpleNamespace

from vmm_conformance.contracts import (
    Block,
    Buffer,
    Command,
    DeviceConfig,
    DriverCapabilities,
    DriverError,
    DriverOptions,
    Executable,
    ExecuteFailed,
    Granularity,
    MemoryInfo,
    Range,
    Revision,
    Settings,
    Slot,
    SubjectError,
    UpdateMode,
    Use,
    status_name,
)
from vmm_conformance.drivers.host import HostDriver
from vmm_conformance.history.events import History
from vmm_conformance.history.files import event_line
from vmm_conformance.running.proc.messages import CALLS
from vmm_conformance.running.recorder import Recorder
from vmm_reference.mutants import MUTANTS
from vmm_reference.subject import reference

WHO = {"name": "served", "version": "1", "contracts": ["allocator", "flags", "skip-remap", "vmm-allocator"],
       "capabilities": {"spaces": [0, 1, 5], "paths": ["grow/in place", "grow/moved"], "address_space": 16,
                        "shrink": True, "trim": True, "late_peers": True, "statistics": True,
                        "pause": ["backup", "discard"], "captures": True}}  # fmt: skip
OWN = {"contracts": ["allocator", "vmm-allocator"], "calls": "reported", "device": {"capacity": 64 << 20}}
RESULTS = {"granularity": Granularity, "mem_info": MemoryInfo, "address_range": Range,
           "capabilities": DriverCapabilities}  # fmt: skip


def say(message):
    print(json.dumps(message), flush=True)


def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit()


def ask(call, **given):
    say({"call": call, **given})
    answer = hear()
    if "error" not in answer:
        return answer["return"]
    if answer["error"] == "EXECUTE_FAILED":
        raise ExecuteFailed(answer["message"])
    raise DriverError(answer["status"], call, answer["message"].split(": ", 2)[-1])


class FarDriver:
    """The harness's driver, one line a call."""

    def __getattr__(self, call):
        if call in ("device_count", "capabilities"):
            return self._asked(call, {})
        return lambda *given, **named: self._asked(call, {**dict(zip(CALLS[call], given, strict=False)), **named})

    def _asked(self, call, given):
        if "rights" in given:
            given["rights"] = [[device, int(access)] for device, access in given["rights"].items()]
        if "data" in given:
            given["data"] = bytes(given["data"]).hex()
        answer = ask(call, **given)
        if call == "read":
            return SimpleNamespace(data=(bytes.fromhex(answer),))
        return RESULTS[call](**answer) if call in RESULTS else answer


def own_driver():
    """A driver in this process, whose calls are said when they have been made."""
    recorder = Recorder(HostDriver(DriverOptions()), History())

    def told(event):
        print(event_line(event), flush=True)
        recorder.history.events.clear()

    recorder.now.seen = told
    return recorder.subject


class Objects:
    """What was opened, and the reservations and contexts of it, by number."""

    def __init__(self, subject, driver):
        self.subject = subject
        self.driver = driver
        self.live = {}
        self.reservations = {}
        self.tags = []

    def answer(self, request):
        do = request.pop("do")
        if do == "start":
            return WHO if isinstance(self.driver, FarDriver) else WHO | OWN
        if do == "stream_create":
            return self.driver.unrecorded.stream_create(**request)
        if do == "stream_destroy":
            return self.driver.unrecorded.stream_destroy(**request)
        key, number = next((key, request.pop(key)) for key in ("allocator", "flags", "vmm_allocator", "step_executor")
                           if key in request)  # fmt: skip
        if do == "open":
            self.live[number] = opened(self.subject, self.driver, key, request)
            return None
        return told(self.made(self.live[number], do, request))

    def made(self, thing, do, given):
        if given.pop("thread", 0):
            return on_a_thread(lambda: self.made(thing, do, given))
        given = {name: self.read(name, value) for name, value in given.items()}
        if do == "release":
            return given["reservation"].release()
        if do == "device_tag":
            self.tags.append(thing.device_tag(**given))
            self.tags[-1].__enter__()
            return None
        if do == "device_tag_end":
            self.tags.pop().__exit__(None, None, None)
            return None
        if do == "step":
            given["execute"] = execute
        answer = getattr(thing, do)(**given)
        if do != "create_reservation":
            return answer
        self.reservations[len(self.reservations)] = answer
        return {"reservation": len(self.reservations) - 1, **answer.range._asdict()}

    def read(self, name, value):
        if name == "reservation":
            return self.reservations.get(value)
        if name == "buffers":
            return [Buffer(**buffer) for buffer in value]
        kind = {"block": Block, "address": Range}.get(name)
        return kind(**value) if kind else value


def on_a_thread(body):
    import threading

    came = []

    def run():
        try:
            came.append((body(), None))
        except Exception as error:
            came.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    answer, error = came[0]
    if error:
        raise error
    return answer


def opened(subject, driver, key, given):
    if key == "allocator":
        return subject.allocator(driver, given["device"])
    if key == "flags":
        return subject.flags(Revision(given["revision"]))
    if key == "vmm_allocator":
        configs = [DeviceConfig(**{**config, "exempt": tuple(config["exempt"])}) for config in given["configs"]]
        return subject.vmm_allocator(driver, configs)
    whole = Executable(**given["executable"])
    slots = tuple(Slot(slot["space"], Use(slot["use"]), slot["constant"]) for slot in whole.slots)
    commands = tuple(Command(tuple(command["slots"]), command["traced"]) for command in whole.commands)
    executable = replace(whole, slots=slots, commands=commands, mode=UpdateMode(whole.mode))
    return subject.step_executor(driver, executable)


def execute(table, persistent):
    ask("execute", table=[list(entry) for entry in table], persistent=None if persistent is None else list(persistent))


def told(answer):
    if isinstance(answer, Settings):
        return asdict(answer)
    return answer._asdict() if hasattr(answer, "_asdict") else answer


def main():
    wrong = next((mutant.subject for mutant in MUTANTS if mutant.id in sys.argv[1:]), None)
    objects = Objects(wrong or reference, own_driver() if "own" in sys.argv[1:] else FarDriver())
    while True:
        request = hear()
        try:
            say({"return": objects.answer(request)})
        except SubjectError as error:
            say({"refuse": error.code.value, "message": error.message})
        except DriverError as error:
            say({"refuse": status_name(error.status), "message": error.detail})
        except ExecuteFailed as error:
            say({"refuse": "EXECUTE_FAILED", "message": str(error)})


if __name__ == "__main__":
    main()
