"""What drivers answer where documents name no code, and how that is found out without being taken along."""

from __future__ import annotations

import json

import pytest

from vmm_conformance.cli import main
from vmm_conformance.reporting.probed import as_lines
from vmm_conformance.running import refusals
from vmm_conformance.running.probe import probe
from vmm_conformance.running.refusals import QUESTIONS, Refusal, ask, told
from vmm_conformance.running.subjects import open_driver


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_host_driver_refuses_all_of_it(question):
    asked = ask("host", question)
    assert asked.question == question
    assert asked.answer in ("INVALID_VALUE", "ALREADY_MAPPED", "INVALID_HANDLE", "NOT_MAPPED", "ILLEGAL_ADDRESS"), asked


def test_a_refused_unmap_over_a_hole_tells_what_it_left():
    assert ask("host", "unmap over a hole").detail == "unmap: of the two mappings around the hole 2 are left"


def test_what_a_driver_takes_is_said():
    assert ask("host,quirk=Q-30", "free with half the size") == Refusal(
        "free with half the size", "taken", "a reservation was freed with half its size"
    )


@pytest.mark.parametrize(
    ("status", "output", "errors", "answer", "detail"),
    [
        (0, "INVALID_VALUE\nrelease: no such handle\n", "a warning", "INVALID_VALUE", "release: no such handle"),
        (-11, "", "", "killed by SIGSEGV", "no word"),
        (1, "", "Traceback\n  ...\nOSError: gone\n", "exit status 1", "OSError: gone"),
        (-6, "taken\nit was\n", "free(): invalid pointer", "killed by SIGABRT", "free(): invalid pointer"),
    ],
)
def test_how_a_process_ended_is_an_answer(status, output, errors, answer, detail):
    assert told("release twice", status, output, errors) == Refusal("release twice", answer, detail)


def test_a_driver_that_does_not_answer(monkeypatch):
    monkeypatch.setattr(refusals, "PATIENCE", 0.001)
    monkeypatch.setattr(refusals, "QUESTIONS", {"release twice": QUESTIONS["release twice"]})
    assert [refusal.answer for refusal in refusals.ask_all("host")] == ["no answer"]


def test_they_are_part_of_a_probe(monkeypatch, capsys):
    monkeypatch.setattr(refusals, "QUESTIONS", {"release twice": QUESTIONS["release twice"]})
    assert main(["probe", "--refusals", "--json"]) == 0
    (refusal,) = json.loads(capsys.readouterr().out)["refusals"]
    assert (refusal["question"], refusal["answer"]) == ("release twice", "INVALID_HANDLE")
    lines = "\n".join(as_lines(probe(open_driver("host")), [Refusal(**refusal)]))
    assert "what it answers where documents name no code\n  release twice               INVALID_HANDLE: " in lines
