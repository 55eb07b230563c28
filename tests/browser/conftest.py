"""A real browser: Debian's chromium, driven by playwright. Without either the tests here are skipped."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "html"))

BROWSER = os.environ.get("VMM_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
"""It may be run by root, and nothing of its own goes out to a network."""
PATIENCE = 180_000
"""Milliseconds that anything may take on a busy machine."""
SHOTS = os.environ.get("VMM_SCREENSHOTS")
"""A folder for pictures of the page, for somebody to look at."""


@pytest.fixture(scope="session")
def browser():
    """A headless browser."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'vmm-conformance[browser]' (no browser download)"
    )
    if not BROWSER:
        pytest.skip("needs a browser: apt-get install chromium, or say where one is in VMM_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def visit(browser, tmp_path):
    """``visit(documents, **context)`` opens their page; at the end, nothing was said and nothing was fetched.

    ``context`` are options of the browser's context; ``hash`` is the part of the page to open; ``refused`` says
    that the page's policy has something to complain of, ``measured`` that its thread's time is wanted.
    """
    from vmm_conformance.reporting.html.documents import document
    from vmm_conformance.reporting.html.page import render

    said, asked, contexts, complaints = [], [], [], []

    def open_page(*data, hash="", text=None, refused=False, measured=False, **options):
        complaints.append(refused)
        file = tmp_path / "page.html"
        file.write_text(text or render([document(each, f"night-{n}") for n, each in enumerate(data, 1)]), "utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        if measured:
            page.vmm_metrics = context.new_cdp_session(page)
            page.vmm_metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri() + hash)
        return page

    yield open_page
    for context in contexts:
        context.close()
    said = [text for text in said if not (any(complaints) and "Content Security Policy" in text)]
    assert said == []
    assert not [url for url in asked if not url.startswith((tmp_path / "page.html").as_uri())]


@pytest.fixture
def shot():
    """``shot(page, name)`` keeps a picture, if somebody asked for pictures."""

    def take(page, name):
        if SHOTS:
            page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))

    return take
