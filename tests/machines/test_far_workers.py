"""Workers in other processes and behind sockets, as xdist's ``--tx`` asks for them, with one memory of failures."""

from __future__ import annotations

import json
import sys

from machine_world import free_port


def failures(folder):
    """Of each broken invariant, how many programs it took where it took the most."""
    (subject,) = json.loads((folder / "report" / "report.json").read_text("utf-8"))["subjects"]
    return {e["id"]: max(f["programs_before"] for f in e["failures"]) for e in subject["invariants"] if e["failures"]}


def test_machines_share_what_they_found(machine, suites, listening, redis_place):
    near, far = machine("near"), machine("far")
    options = ("--vmm-invariant", "FLAG", "--vmm-database", redis_place, "--dist", "load", "--vmm-report=report")
    first = suites(near, "own:rare", "--tx", "2*popen", *options)
    assert first.returncode == 1, first.stdout + first.stderr
    found = failures(near)
    assert max(found.values()) > len(found)

    assert redis_place not in (near / "report" / "report.json").read_text("utf-8")  # it may hold a password
    (near / "report" / "report.json").unlink()
    port = free_port()
    listening([sys.executable, "-m", "execnet.script.socketserver", f"127.0.0.1:{port}"], port, cwd=far)
    second = suites(near, "own:rare", "--tx", f"socket=127.0.0.1:{port}//chdir={far}", *options, "--vmm-seed", "5")
    assert second.returncode == 1, second.stdout + second.stderr
    again = failures(near)
    assert again.keys() >= found.keys()
    assert max(again[id] for id in found) <= len(found)
    assert (far / "_pytest").is_dir()  # sent there by xdist
