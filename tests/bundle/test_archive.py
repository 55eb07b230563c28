"""A bundle from somebody else: whatever it is, it gives an error, and nothing is written."""

from __future__ import annotations

import random
import stat
import zipfile

import pytest

from vmm_conformance.bundling import archive
from vmm_conformance.bundling.archive import BundleError, read
from vmm_conformance.cli import main


def tree(folder):
    return sorted((path.relative_to(folder), path.stat().st_size) for path in folder.rglob("*"))


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path, monkeypatch):
    """Verification happens in a folder of its own, in which nothing may appear; nor beside it."""
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    yield
    assert tree(inside) == []


def test_equal_reports_make_equal_bundles(bundle):
    assert bundle("deaf").read_bytes() == bundle("deaf").read_bytes()


def test_a_bundle_holds_the_report_the_programs_and_the_histories(bundle):
    names = sorted(read(bundle("deaf")).members)
    assert names[:2] == ["histories/FLAG-148-own_bundle-deaf.jsonl", "histories/FLAG-149-own_bundle-deaf.jsonl"]
    assert {"manifest.json", "report.json", "programs/FLAG-148-own_bundle-deaf.json"} <= set(names)


def test_truncated_anywhere(bundle):
    path = bundle("deaf")
    whole = path.read_bytes()
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(BundleError, match="no bundle, or a damaged one"):
            read(path)


@pytest.mark.parametrize("seed", range(60))
def test_a_changed_byte_is_noticed_or_changes_nothing(bundle, seed):
    path = bundle("deaf")
    good, whole = read(path), bytearray(path.read_bytes())
    numbers = random.Random(seed)
    whole[numbers.randrange(len(whole))] ^= 1 << numbers.randrange(8)
    path.write_bytes(whole)
    try:
        found = read(path)
    except BundleError:
        return
    assert found.members == good.members


@pytest.mark.parametrize(
    "name",
    [
        "../evil.json", "programs/../../evil.json", "/etc/evil.json", "C:\\evil.json", "programs\\..\\evil.json",
        "programs/.evil.json", "programs/a/b.json", "histories/x.json", "report.html", "programs/",
        "programs/a.json\x00", "", "./report.json", "PROGRAMS/a.json", "programs/ä.json",
    ],
)  # fmt: skip
def test_only_members_that_belong_in_a_bundle(repacked, name):
    def add(members):
        info = zipfile.ZipInfo("programs/stand-in.json")
        info.filename = info.orig_filename = name
        return [*members, (info, b"{}")]

    with pytest.raises(BundleError):
        read(repacked("good", add))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_no_links_no_devices(repacked, kind):
    def add(members):
        info = zipfile.ZipInfo("programs/link.json")
        info.external_attr = (kind | 0o777) << 16
        return [*members, (info, b"/etc/passwd")]

    with pytest.raises(BundleError, match=r"programs/link\.json is no plain file"):
        read(repacked("good", add))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice(repacked):
    with pytest.raises(BundleError, match=r"report\.json is there twice"):
        read(repacked("good", lambda members: [*members, members[1]]))


def test_what_the_manifest_does_not_list_and_what_it_lists_in_vain(repacked):
    with pytest.raises(BundleError, match=r"programs/more\.json is not listed"):
        read(repacked("good", lambda members: [*members, (zipfile.ZipInfo("programs/more.json"), b"{}")]))
    with pytest.raises(BundleError, match=r"report\.json is listed in the manifest and missing"):
        read(repacked("good", lambda members: members[:1]))
    with pytest.raises(BundleError, match=r"manifest\.json is missing"):
        read(repacked("good", lambda members: members[1:]))


def test_an_edited_member(repacked):
    def edit(members):
        return [(info, data.replace(b'"pass"', b'"fail"') if info.filename == "report.json" else data)
                for info, data in members]  # fmt: skip

    with pytest.raises(BundleError, match=r"report\.json was changed"):
        read(repacked("good", edit))


@pytest.mark.parametrize(
    ("limit", "complaint"), [("LARGEST_MEMBER", "is larger than 0 MiB"), ("LARGEST", "larger than 0 MiB when unpacked")]
)
def test_huge_ones_are_not_read(bundle, monkeypatch, limit, complaint):
    path = bundle("good")
    monkeypatch.setattr(archive, limit, 1000)
    with pytest.raises(BundleError, match=complaint):
        read(path)


def test_a_bomb_that_lies_about_its_size(bundle):
    """A member of 64 MiB of zeros that says it has a thousand bytes."""
    path = bundle("good")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(zipfile.ZipInfo("programs/bomb.json"), bytes(64 << 20), zipfile.ZIP_DEFLATED)
    raw = path.read_bytes()
    path.write_bytes(raw.replace((64 << 20).to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    with pytest.raises(BundleError):
        read(path)


def test_too_many_members(bundle, monkeypatch):
    path = bundle("good")
    monkeypatch.setattr(archive, "MOST_MEMBERS", 1)
    with pytest.raises(BundleError, match="2 members, at most 1 are read"):
        read(path)


def test_an_encrypted_member(bundle):
    path = bundle("good")
    raw = bytearray(path.read_bytes())
    at = raw.rindex(b"PK\x01\x02")
    raw[at + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(BundleError, match="encrypted"):
        read(path)


@pytest.mark.parametrize("text", [b"", b"no zip", b"PK\x05\x06" + bytes(18)])
def test_the_command_says_so_and_exits_2(tmp_path, capsys, text):
    path = tmp_path / "odd.vmm.zip"
    path.write_bytes(text)
    assert main(["verify", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"vmm-conformance verify: {path}: ")


def test_a_folder_without_its_programs_is_no_bundle(runs, tmp_path, capsys):
    (tmp_path / "report.json").write_bytes((runs / "deaf" / "report.json").read_bytes())
    assert main(["bundle", str(tmp_path / "report.json")]) == 2
    assert "a bundle needs the whole folder of the report" in capsys.readouterr().err


def test_a_report_cannot_name_files_outside_its_folder(runs, tmp_path, capsys):
    text = (runs / "deaf" / "report.json").read_text()
    (tmp_path / "secret.json").write_text("{}")
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "report.json").write_text(text.replace("programs/FLAG-148", "../secret.json#"))
    assert main(["bundle", str(folder)]) == 2
    assert "not in its folder" in capsys.readouterr().err
