"""Devices that the controller of xdist workers lends them, and the variables that say who sees which."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest

from vmm_conformance.drivers.opening import device_count
from vmm_conformance.drivers.visible import narrowed, own, shown
from vmm_conformance.pytest_devices import INDEX, Leases, Lending, use

# -- leases


def test_a_device_is_lent_to_one_worker_and_to_its_replacement():
    leases = Leases(2)
    assert [leases.take("gw0"), leases.take("gw1")] == [0, 1]
    with pytest.raises(LookupError, match="no device is left for worker gw2: all 2 are held"):
        leases.take("gw2")
    leases.give_back("gw0")
    leases.give_back("gw0")
    assert leases.take("gw2") == 0
    assert leases.held == {"gw1": 1, "gw2": 0}
    leases.give_back("gw2")
    leases.give_back("gw1")
    assert leases.take("gw3") == 1


def node(worker, **spec):
    return SimpleNamespace(
        gateway=SimpleNamespace(id=worker, spec=SimpleNamespace(**{"popen": True, "via": None, "env": {}, **spec})),
        workerinput={},
    )


@pytest.fixture
def lending(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    return Lending("emulated-cuda,devices=4", device_count("emulated-cuda,devices=4"))


def test_workers_of_this_machine_are_lent_what_the_caller_sees(lending):
    first, second = node("gw0"), node("gw1")
    far, named = node("gw2", popen=None, ssh="there"), node("gw3", env={"CUDA_VISIBLE_DEVICES": "2"})
    lending.pytest_xdist_setupnodes([each.gateway.spec for each in (first, second, far, named)])
    for each in (first, second, far, named):
        lending.pytest_configure_node(each)
    assert [each.workerinput for each in (first, second, far, named)] == [{INDEX: 0}, {INDEX: 1}, {}, {}]

    lending.pytest_testnodedown(first)
    lending.pytest_testnodedown(far)
    again = node("gw4")
    lending.pytest_configure_node(again)
    assert again.workerinput == {INDEX: 0}
    assert lending.had == {
        "gw0": "CUDA_VISIBLE_DEVICES=2", "gw1": "CUDA_VISIBLE_DEVICES=3", "gw4": "CUDA_VISIBLE_DEVICES=2",
    }  # fmt: skip


def test_more_workers_than_devices_are_refused(lending):
    with pytest.raises(pytest.UsageError, match=r"^3 workers would share 2 device\(s\) of the driver 'emulated-cuda,"):
        lending.pytest_xdist_setupnodes([node("").gateway.spec] * 3)


# -- variables


@pytest.mark.parametrize(
    ("vendor", "environment", "expected"),
    [
        ("cuda", {}, (0, 1, 2, 3)),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "2, 0"}, (2, 0)),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "1,-1,2"}, (1,)),
        ("cuda", {"CUDA_VISIBLE_DEVICES": ""}, ()),
        ("cuda", {"HIP_VISIBLE_DEVICES": "1"}, (0, 1, 2, 3)),
        ("hip", {"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": ""}, (1,)),
        ("hip", {"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "3"}, (3,)),
        ("hip", {"ROCR_VISIBLE_DEVICES": "3,2", "HIP_VISIBLE_DEVICES": "1"}, (2,)),
    ],
)
def test_what_variables_show_and_what_is_lent_of_it(vendor, environment, expected):
    assert shown(vendor, 4, environment) == expected
    for index, device in enumerate(expected):
        assert shown(vendor, 4, environment | narrowed(vendor, index, environment)) == (device,)


def test_whatever_variables_say_the_lent_device_is_the_one_of_that_index():
    texts = (None, "", "0", "3,1", "2,9,1")
    names = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    for vendor, said in product(("hip", "cuda"), product(texts, repeat=3)):
        environment = {name: text for name, text in zip(names, said, strict=True) if text is not None}
        for index, device in enumerate(shown(vendor, 4, environment)):
            worker = dict(environment)
            use(f"emulated-{vendor}", index, worker)
            assert shown(vendor, 4, worker) == (device,), (vendor, environment)


def test_a_device_may_have_a_name_instead_of_a_number():
    environment = {"CUDA_VISIBLE_DEVICES": "GPU-8932f937, GPU-4cf8db2d"}
    assert narrowed("cuda", 1, environment) == {"CUDA_VISIBLE_DEVICES": "GPU-4cf8db2d"}


def test_the_device_in_words_names_every_layer():
    environment = {"ROCR_VISIBLE_DEVICES": "3,2", "PATH": "/bin"}
    assert own("hip", environment | narrowed("hip", 1, environment)) == "HIP_VISIBLE_DEVICES=1 ROCR_VISIBLE_DEVICES=3,2"


def test_devices_are_counted_without_opening_one(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,5")
    names = ("host", "host,quirk=Q-01", "own", "emulated-cuda", "emulated-cuda,devices=9")
    assert [device_count(name) for name in names] == [0, 0, 0, 0, 3]


# -- a run

CRASHING = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(6))
def test_device(number):
    with open("seen.txt", "a") as file:
        print(os.environ["PYTEST_XDIST_WORKER"], os.environ["CUDA_VISIBLE_DEVICES"], file=file)
    if os.environ["PYTEST_XDIST_WORKER"] == "gw1":
        os._exit(1)
"""
TELLING = """
def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        print("had", config.pluginmanager.get_plugin("vmm-conformance-devices").had)
"""


def test_a_run_has_a_worker_for_each_device_and_a_replacement_has_that_of_the_one_that_crashed(own, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    own.makepyfile(test_crashing=CRASHING)
    own.makeconftest(TELLING)
    done = own.runpytest_subprocess("-n", "auto", "-p", "no:cacheprovider", "--vmm-driver", "emulated-cuda,devices=4")
    seen = {tuple(line.split()) for line in (own.path / "seen.txt").read_text("utf-8").splitlines()}
    assert {("gw0", "2"), ("gw1", "3")} <= seen <= {("gw0", "2"), ("gw1", "3"), ("gw2", "3")}, done.stdout.str()
    had = {worker: f"CUDA_VISIBLE_DEVICES={device}" for worker, device in (("gw0", 2), ("gw1", 3), ("gw2", 3))}
    done.stdout.fnmatch_lines([f"had {had}"])


def test_workers_without_devices_to_lend_are_as_many_as_asked_for(own):
    own.makepyfile("def test_nothing(): pass")
    done = own.runpytest_inprocess("-n", "1", "--vmm-driver", "host,quirk=Q-01", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1)


@pytest.mark.parametrize("option", ["--vmm-driver", "--vmm-subject"])
def test_a_run_with_too_many_workers_ends_before_they_start(own, monkeypatch, option):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    done = own.runpytest_inprocess("-n", "2", option, "emulated-cuda,devices=1")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["ERROR: 2 workers would share 1 device(s) of the driver 'emulated-cuda,devices=1'*"])
