"""Bundles as zip files. They are read in memory, with bounds, and nothing is ever unpacked.

A bundle comes from somebody else, so everything about it is checked before it is used: what members are
called, that they are files, how large they are and whether they are what the manifest says.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FORMAT: Final = "vmm-conformance bundle"
VERSION: Final = 1
MANIFEST, REPORT, KILLS = "manifest.json", "report.json", "kills.json"
MOST_MEMBERS: Final = 20_000
LARGEST_MEMBER: Final = 256 << 20
LARGEST: Final = 1 << 30
"""Bytes of one member, and of all together, unpacked."""
_NAME: Final = re.compile(
    r"manifest\.json|report\.json|kills\.json|(programs/[A-Za-z0-9_][A-Za-z0-9_.-]*\.json)"
    r"|(histories/[A-Za-z0-9_][A-Za-z0-9_.-]*\.jsonl)"
)
_WHEN: Final = (2026, 1, 1, 0, 0, 0)
"""The time of every member: equal contents make equal bundles."""


class BundleError(ValueError):
    """A file that is no bundle, or one that is not what it says it is; the message names what is wrong."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The members of a bundle by name, and its manifest, both checked against each other."""

    manifest: Mapping[str, Any]
    members: Mapping[str, bytes]

    def text(self, name: str) -> str:
        """A member as text. Raises `BundleError`."""
        if name not in self.members:
            raise BundleError(f"{name} is missing")
        try:
            return self.members[name].decode("utf-8")
        except UnicodeDecodeError as error:
            raise BundleError(f"{name}: no UTF-8: {error.reason}") from None

    def data(self, name: str) -> Any:
        """A member as JSON data. Raises `BundleError`."""
        try:
            return json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise BundleError(f"{name}: {error}") from None


def write(path: Path, members: Mapping[str, bytes], about: Mapping[str, Any]) -> Path:
    """Write a bundle of ``members``; ``about`` goes into its manifest. Returns ``path``."""
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        **about,
        "members": {name: _about(data) for name, data in sorted(members.items())},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        for name, data in ((MANIFEST, json.dumps(manifest, indent=2).encode()), *sorted(members.items())):
            member = zipfile.ZipInfo(name, _WHEN)
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            file.writestr(member, data, zipfile.ZIP_DEFLATED)
    return path


def _about(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def read(path: Path) -> Bundle:
    """The bundle in ``path``. Raises `BundleError` for anything that is not exactly one."""
    try:
        with zipfile.ZipFile(path) as file:
            members = _members(file)
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror or error}") from None
    except BundleError as error:
        raise BundleError(f"{path}: {error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise BundleError(f"{path}: no bundle, or a damaged one: {error}") from None
    try:
        bundle = Bundle(_manifest(members), members)
        _compare(bundle)
    except BundleError as error:
        raise BundleError(f"{path}: {error}") from None
    return bundle


def _members(file: zipfile.ZipFile) -> dict[str, bytes]:
    listed = file.infolist()
    if len(listed) > MOST_MEMBERS:
        raise BundleError(f"{len(listed)} members, at most {MOST_MEMBERS} are read")
    if sum(member.file_size for member in listed) > LARGEST:
        raise BundleError(f"larger than {LARGEST >> 20} MiB when unpacked")
    members: dict[str, bytes] = {}
    for member in listed:
        _check_member(member, members)
        with file.open(member) as stream:
            data = stream.read(member.file_size + 1)
        if len(data) != member.file_size:
            raise BundleError(f"{member.filename} is not as large as the bundle says")
        members[member.filename] = data
    return members


def _check_member(member: zipfile.ZipInfo, known: Mapping[str, bytes]) -> None:
    name = member.orig_filename
    if not _NAME.fullmatch(name) or name != member.filename:
        raise BundleError(f"a member called {name[:80]!r}: only a report, programs and histories belong in a bundle")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise BundleError(f"{name} is no plain file")
    if member.flag_bits & 1:
        raise BundleError(f"{name} is encrypted")
    if name in known:
        raise BundleError(f"{name} is there twice")
    if member.file_size > LARGEST_MEMBER:
        raise BundleError(f"{name} is larger than {LARGEST_MEMBER >> 20} MiB")


def _manifest(members: Mapping[str, bytes]) -> Mapping[str, Any]:
    manifest = Bundle({}, members).data(MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"{MANIFEST}: expected the format {FORMAT!r}")
    if manifest.get("version") != VERSION:
        raise BundleError(f"{MANIFEST}: version {manifest.get('version')!r} of the format, accepted: {VERSION}")
    if not isinstance(manifest.get("members"), dict):
        raise BundleError(f"{MANIFEST}: 'members' is missing")
    return manifest


def _compare(bundle: Bundle) -> None:
    """The members are those that the manifest lists, byte for byte."""
    listed, there = set(bundle.manifest["members"]), set(bundle.members) - {MANIFEST}
    for name in sorted(listed - there):
        raise BundleError(f"{name[:80]} is listed in the manifest and missing")
    for name in sorted(there - listed):
        raise BundleError(f"{name} is not listed in the manifest")
    for name in sorted(there):
        if bundle.manifest["members"][name] != _about(bundle.members[name]):
            raise BundleError(f"{name} was changed: it is not what the manifest lists")
    if not there & {REPORT, KILLS}:
        raise BundleError(f"neither {REPORT} nor {KILLS} is in it")
