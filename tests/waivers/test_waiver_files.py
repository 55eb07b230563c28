"""Files of waivers: what they may say, and one line for what they may not."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import jsonschema
import pytest

from vmm_conformance.invocation import BadInvocation, Invocation
from vmm_conformance.waivers.files import WaiverError, load, schema

FULL = {
    "invariant": '"ALLOCATOR-5"',
    "reason": '"frees at once"',
    "link": '"https://example.org/issues/7"',
    "expires": "2027-06-30",
    "subject": '"hasty"',
    "subject_versions": '">=1.2, <2"',
    "driver": '"hip"',
    "driver_versions": '{ "HIP runtime" = ">=7.0, <7.3" }',
    "device": '"*MI300X*"',
    "message": '"unmap in * takes away memory*"',
    "kind": '"failure"',
    "program": '"programs/early.json"',
}
PROGRAM = {"version": 1, "contract": "allocator", "operations": [{"op": "allocate", "size": 1}]}
ACCEPTED_KEYS = ", ".join(FULL)


@pytest.fixture
def written(tmp_path):
    """Writes a file with one waiver, the keys of ``FULL`` with changes; None leaves a key out."""
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "early.json").write_text(json.dumps(PROGRAM))
    (tmp_path / "programs" / "flags.json").write_text(json.dumps(
        {"version": 1, "contract": "flags", "configuration": {"revision": "flags"}, "operations": []}
    ))  # fmt: skip

    def write(text=None, **changes):
        path = tmp_path / "waivers.toml"
        lines = [f"{key} = {value}" for key, value in (FULL | changes).items() if value is not None]
        path.write_text("\n".join(["[[waiver]]", *lines]) if text is None else text)
        return path

    return write


def test_a_full_one(written):
    (waiver,) = load(written())
    assert (waiver.invariant, waiver.expires, waiver.device) == ("ALLOCATOR-5", date(2027, 6, 30), "*MI300X*")
    assert waiver.program["operations"][0]["op"] == "allocate"
    assert waiver.excuse() == "frees at once (https://example.org/issues/7, until 2027-06-30)"
    assert waiver.scope() == "hasty >=1.2, <2 over hip, HIP runtime >=7.0, <7.3, device *MI300X*"


def test_what_may_be_left_out(written):
    optional = ("subject_versions", "driver", "driver_versions", "device", "message", "program")
    (waiver,) = load(written(**dict.fromkeys(optional)))
    assert (waiver.driver, waiver.message, waiver.program) == ("*", "*", None)
    (waiver,) = load(written(subject=None))
    assert waiver.subject == "*"


def test_a_date_may_be_text(written):
    assert load(written(expires='"2027-06-30"'))[0].expires == date(2027, 6, 30)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"reason": None}, f"waiver 1 (ALLOCATOR-5): 'reason' is missing; accepted keys: {ACCEPTED_KEYS}"),
        ({"link": None}, f"waiver 1 (ALLOCATOR-5): 'link' is missing; accepted keys: {ACCEPTED_KEYS}"),
        ({"expires": None}, f"waiver 1 (ALLOCATOR-5): 'expires' is missing; accepted keys: {ACCEPTED_KEYS}"),
        ({"invariant": None}, f"waiver 1: 'invariant' is missing; accepted keys: {ACCEPTED_KEYS}"),
        (
            {"subject": None, "driver": None},
            "waiver 1 (ALLOCATOR-5), subject: is missing, and driver too; accepted: one of them, or both",
        ),
        ({"until": "1"}, f"waiver 1 (ALLOCATOR-5): unexpected 'until'; accepted keys: {ACCEPTED_KEYS}"),
        (
            {"invariant": '"STEP"'},
            'waiver 1 (STEP), invariant: got "STEP"; accepted: the id of one invariant, as in STEP-87',
        ),
        (
            {"invariant": '"STEP-9999"'},
            'waiver 1 (STEP-9999), invariant: got "STEP-9999"; accepted: an invariant of the catalogue,'
            " see vmm-conformance list",
        ),
        (
            {"expires": '"soon"'},
            'waiver 1 (ALLOCATOR-5), expires: got "soon"; accepted: the last day on which it holds, as in 2027-06-30',
        ),
        (
            {"expires": "2027-06-30T10:00:00"},
            'waiver 1 (ALLOCATOR-5), expires: got "2027-06-30T10:00:00"; accepted: the last day on which it holds,'
            " as in 2027-06-30",
        ),
        (
            {"expires": '"2027-02-31"'},
            'waiver 1 (ALLOCATOR-5), expires: got "2027-02-31"; accepted: a day of the calendar',
        ),
        (
            {"kind": '"hang"'},
            'waiver 1 (ALLOCATOR-5), kind: got "hang"; accepted: failure, or crash or timeout for programs that end'
            " their process",
        ),
        ({"reason": '""'}, 'waiver 1 (ALLOCATOR-5), reason: got ""; accepted: text that says why the failure is borne'),
        (
            {"link": '"issue 7"'},
            'waiver 1 (ALLOCATOR-5), link: got "issue 7"; accepted: an address where the failure is tracked,'
            " as in https://example.org/issues/7",
        ),
        (
            {"subject_versions": '"new"'},
            'waiver 1 (ALLOCATOR-5), subject_versions: got "new"; accepted: a range of versions, as in >=1.2, <2',
        ),
        (
            {"driver_versions": '{ ROCm = "7" }'},
            'waiver 1 (ALLOCATOR-5), driver_versions: got "7"; accepted: a range of versions, as in >=1.2, <2',
        ),
        (
            {"program": '"gone.json"'},
            'waiver 1 (ALLOCATOR-5), program: got "gone.json"; accepted: the path of a program below {folder!r}'
            " (No such file or directory)",
        ),
        (
            {"program": '"programs/flags.json"'},
            'waiver 1 (ALLOCATOR-5), program: got "programs/flags.json"; accepted: a program for the contract'
            " allocator, as the invariant is; this one is for flags",
        ),
    ],
)
def test_what_is_not_accepted_is_one_line(written, changes, told):
    path = written(**changes)
    with pytest.raises(WaiverError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: " + told.replace("{folder!r}", repr(str(path.parent)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[waiver]", "no TOML: Expected ']]' at the end of an array declaration (at line 1, column 9)"),
        ("", "'waiver' is missing; accepted: tables [[waiver]] and nothing else"),
        ("waiver = 3", "expected array, got 3; accepted: tables [[waiver]] and nothing else"),
        ("waiver = [3]", "waiver 1: expected object, got 3; accepted keys: " + ACCEPTED_KEYS),
        ("waiver = []\nmore = 1", "unexpected 'more'; accepted: tables [[waiver]] and nothing else"),
    ],
)
def test_what_is_no_file_of_waivers_is_one_line(written, text, told):
    path = written(text)
    with pytest.raises(WaiverError) as caught:
        load(path)
    assert str(caught.value) == f"{path}: {told}"


def test_the_schema_is_one_and_agrees(written):
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    (waiver,) = load(written())
    kept = {key: value for key, value in waiver.as_data().items() if key in FULL} | {"program": waiver.file}
    validator.validate({"waiver": [kept]})
    assert set(FULL) == set(schema()["$defs"]["waiver"]["properties"])
    for key in ("reason", "link", "expires", "invariant"):
        assert not validator.is_valid({"waiver": [{k: v for k, v in kept.items() if k != key}]})
    assert not validator.is_valid({"waiver": [{k: v for k, v in kept.items() if k not in ("subject", "driver")}]})


def test_the_day_is_given_or_today(written):
    path = written()
    day = date(2027, 7, 1)
    assert not Invocation(waivers=path, today=day).waiver_objects().live(load(path)[0])
    assert Invocation(waivers=path, today=day - timedelta(1)).waiver_objects().live(load(path)[0])
    assert Invocation(waivers=path).waiver_objects().today >= date(2026, 1, 1)
    assert Invocation().waiver_objects() is None


@pytest.mark.parametrize("kind", ["crash", "timeout"])
def test_what_ends_a_process_is_waived_only_where_that_is_not_the_end(written, kind):
    path = written(kind=f'"{kind}"')
    with pytest.raises(BadInvocation, match=rf"a {kind} is waived \(ALLOCATOR-5\), and would end the run; .*isolation"):
        Invocation(waivers=path).waiver_objects()
    for borne in ({"isolation": "process"}, {"subjects": ("proc:pool",)}, {"replay": path}):
        assert Invocation(waivers=path, **borne).waiver_objects().entries[0].kind == kind


def test_a_missing_file_is_a_matter_of_usage():
    told = "no file of waivers 'none.toml': No such file or directory; give a TOML file"
    with pytest.raises(BadInvocation, match=f"^{told}$"):
        Invocation(waivers=Path("none.toml")).waiver_objects()
