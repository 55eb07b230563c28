"""Puts the page together. Needs jinja2, the extra ``html``; every text is escaped by the template engine."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vmm_conformance.reporting.html.columns import SIGNS, Column, columns_of, headline
from vmm_conformance.reporting.html.documents import Document, distinct, reports_of
from vmm_conformance.reporting.html.ended import ended
from vmm_conformance.reporting.html.failures import articles
from vmm_conformance.reporting.html.kills import kill_pages
from vmm_conformance.reporting.html.matrix import Texts, matrix, totals
from vmm_conformance.reporting.html.points import points_of
from vmm_conformance.reporting.html.trend import trends
from vmm_conformance.reporting.html.waived import waived
from vmm_conformance.reporting.verdicts import OVERALL_SIGNS

if TYPE_CHECKING:
    from jinja2 import Environment

FILE: Final = "report.html"
MISSING: Final = "the page needs jinja2: pip install 'vmm-conformance[html]'"


def available() -> bool:
    """Whether the template engine is installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        return False
    return True


def render(documents: Sequence[Document]) -> str:
    """The page for ``documents`` in the order given, the latest of each subject last."""
    named = distinct(documents)
    reports = reports_of(named)
    columns = columns_of(reports)
    broken = [(column, articles(column)) for column in columns]
    failing = {(article["column"], id) for _, made in broken for article in made for id in _ids(article)}
    texts = Texts()
    groups = matrix(columns, failing, texts)
    pages = kill_pages(named)
    style, script = _source("style.css"), _source("script.js")
    return _environment().get_template("page.html").render(
        style=style, script=script, style_hash=_digest(style), script_hash=_digest(script),
        title=_title(columns, pages), head=headline(columns), columns=columns, groups=groups,
        totals=totals(columns), texts=texts.texts, signs=SIGNS, overall_signs=OVERALL_SIGNS,
        broken=[(column, made) for column, made in broken if made], trends=trends(reports),
        waived=waived(reports), endings=[(column, made) for column in columns if (made := ended(column))],
        points=[(column, rows) for column in columns if (rows := points_of(column))],
        unreached=_unreached(columns), kill_pages=pages,
    )  # fmt: skip


def write(documents: Sequence[Document], path: Path) -> Path:
    """Write the page to ``path``; returns it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(documents), "utf-8")
    return path


def _ids(article: dict[str, Any]) -> list[str]:
    return [article["id"], *(folded["id"] for folded in article["folded"])]


def _title(columns: Sequence[Column], pages: Sequence[Any]) -> str:
    names = list(dict.fromkeys(column.name for column in columns))
    if not names:
        return "Kill matrix" if pages else "Nothing was run"
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _unreached(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """What was not shown either way, each invariant once for all columns that say the same of it."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for column in columns:
        for entry in column.unreached():
            key = (entry["id"], entry["verdict"], entry["reason"])
            rows.setdefault(key, {"entry": entry, "names": []})["names"].append(column.name)
    return list(rows.values())


@cache
def _environment() -> Environment:
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("vmm_conformance.reporting.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["data"] = _as_data
    return made


def _source(name: str) -> Any:
    """One of our own files, which goes into the page as it is."""
    from markupsafe import Markup

    return Markup(resources.files(__package__).joinpath("templates", name).read_text("utf-8"))


def _digest(text: str) -> str:
    """What the page's security policy calls a style or a script that may be used; others may not."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _as_data(value: Any) -> Any:
    """JSON for a script element: nothing in it can end the element or begin a tag."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
