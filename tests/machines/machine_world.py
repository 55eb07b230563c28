"""A server and subjects for runs on several machines. Where there is no redis-server, its tests are skipped."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

OWN = '''
from zlib import crc32

from vmm_conformance.contracts import Settings
from vmm_reference.subject import reference


class Good:
    """The reference, but for its flags nothing of it."""

    name, version = "good", "1"

    def flags(self, revision):
        return reference.flags(revision)


class Rare(Good):
    """Now and then it reads nothing at all."""

    name = "rare"

    def flags(self, revision):
        reader = reference.flags(revision)
        read = reader.read
        reader.read = lambda *seen: Settings(False, 7) if crc32(repr(seen).encode()) % 60 == 0 else read(*seen)
        return reader


good, rare = Good(), Rare()
'''


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    """Whether somebody listens there; a connection for trial would be the only one that some servers take."""
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return any(fields[1].endswith(f":{port:04X}") and fields[3] == "0A" for fields in sockets)


@pytest.fixture
def listening():
    """``listening(command, port)`` starts a server and waits until it listens; all are stopped afterwards."""
    started = []

    def start(command, port, **options):
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, **options))
        deadline = time.monotonic() + 30
        while not listens(port):
            assert started[-1].poll() is None, f"{command[0]} ended with status {started[-1].returncode}"
            assert time.monotonic() < deadline, f"{command[0]} does not listen at port {port}"
            time.sleep(0.05)

    yield start
    for server in started:
        server.terminate()
        server.wait()


@pytest.fixture
def redis_place(listening, tmp_path):
    """The address of a Redis server that keeps nothing when it ends."""
    if not shutil.which("redis-server"):
        pytest.skip("needs redis-server: apt-get install redis-server")
    pytest.importorskip("redis", reason="needs redis: pip install 'vmm-conformance[redis]'")
    port = free_port()
    listening(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)], port)
    return f"redis://127.0.0.1:{port}/0"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """``machine(name)`` is the folder of a machine, with the subjects of the module ``own`` in it."""
    for variable in [name for name in os.environ if name.startswith(("VMM_", "PYTEST_"))]:
        monkeypatch.delenv(variable)

    def make(name):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "own.py").write_text(OWN, "utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
        return folder

    return make


@pytest.fixture
def suites():
    """``suites(folder, subject, *options)`` runs the suites there with pytest, and returns what came of it."""

    def run(folder, subject, *options):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "vmm_suites"]
        command += ["--vmm-subject", subject, "--vmm-budget", "smoke", *options]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True)

    return run
