"""The reference, over all contracts: its shards join, and the bundle of that is verified to the last program."""

from __future__ import annotations

from vmm_conformance.cli import main


def test_the_bundle_of_the_reference_is_verified(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for shard in ("1/2", "2/2"):
        run = ["run", "--subject", "reference", "--budget", "smoke", "--shard", shard, "--report", shard[0]]
        assert main(run) == 3
    assert main(["merge", "1", "2", "-o", "reference"]) == 0
    assert main(["bundle", "reference"]) == 0
    assert main(["verify", "reference.vmm.zip"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "reference.vmm.zip: verified: 5 same"
    assert printed[-2].startswith("programs of reference from seed 0, budget smoke: same: ")
