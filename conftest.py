"""This repository's own defaults for its tests; nothing here is part of what an installed user gets."""

from __future__ import annotations

from typing import Any

import pytest

pytest_plugins = ["pytester"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--no-skips``, for runs that were given everything that tests ask for."""
    parser.addoption("--no-skips", action="store_true", help="a test that is skipped fails the run")


def _skipped(config: pytest.Config) -> int:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return len(reporter.stats.get("skipped", ())) if config.getoption("no_skips") else 0


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail for what was skipped, be it a test or a module; workers leave that to their controller."""
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say that it failed, and why; the reasons of the skips are in the short summary."""
    count = _skipped(config)
    if count:
        terminalreporter.write_line(f"--no-skips: {count} skipped, which fails this run; install what they ask for")
