"""A run that was given everything must not pass by skipping."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = {
    "skips": "import pytest\ndef test_one(): pytest.skip('needs a gizmo')\ndef test_two(): pass",
    "skips_all": "import pytest\npytest.importorskip('no_such_module', reason='needs a gizmo')",
}


@pytest.mark.parametrize(
    ("test", "options", "status"),
    [
        ("skips", [], 0),
        ("skips", ["--no-skips"], 1),
        ("skips_all", ["--no-skips"], 1),
    ],
)
def test_what_is_skipped_fails_a_run_without_skips(pytester, test, options, status):
    pytester.makeconftest((ROOT / "conftest.py").read_text("utf-8"))
    pytester.makepyfile(TESTS[test])
    done = pytester.runpytest("-ra", "-p", "no:cacheprovider", *options)
    assert done.ret == status
    if status:
        done.stdout.fnmatch_lines(["--no-skips: 1 skipped, which fails this run; *", "SKIPPED*needs a gizmo*"])
