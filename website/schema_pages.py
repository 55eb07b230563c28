"""The reference pages of the file formats, out of the JSON Schemas that ship with the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

Schema = dict[str, Any]
_PACKAGE: Final = Path(str(files("vmm_conformance")))
PROGRAMS: Final = _PACKAGE / "programs" / "program.schema.json"
REPORTS: Final = (
    _PACKAGE / "reporting" / "report.schema.json",
    _PACKAGE / "reporting" / "kills.schema.json",
    _PACKAGE / "waivers" / "waivers.schema.json",
    _PACKAGE / "comparing" / "diff.schema.json",
)
_VALUES_SHOWN: Final = 20


def reports() -> str:
    """The page on ``report.json``, on kill matrices, files of waivers and differences."""
    lines = ["# Reports", "", "What is in the files that a run leaves, in a file of waivers, and what"]
    lines += ["`vmm-conformance diff --json` prints. [Reports, bundles and badges](../reports.md) and"]
    lines += ["[Waive a failure](../how-to/waive.md) say what they are for. Every object is closed: a key that is not"]
    lines += ["listed here is an error.", ""]
    for file in REPORTS:
        schema = _read(file)
        area = file.name.partition(".")[0]
        lines += [f"## {schema['title']}", "", f"JSON Schema: [{file.name}]({file.name}).", ""]
        lines += _fields(schema, area)
        for name, definition in schema["$defs"].items():
            lines += [f"### {area}: {name} {{#{_anchor(area, name)}}}", "", *_definition(definition, area)]
    return "\n".join(lines)


def programs() -> str:
    """The page on program files."""
    schema = _read(PROGRAMS)
    lines = ["# Programs", "", "A program is JSON: `version` 1, the `contract`, a `configuration` and a list of"]
    lines += ["`operations`. Each operation has its name under `op`. What is left out has its default; numbers of"]
    lines += ["streams, blocks and the like are taken modulo what there is, so that a program stays one whatever is"]
    lines += [f"left out of it. JSON Schema: [{PROGRAMS.name}]({PROGRAMS.name}).", ""]
    shown: set[str] = set()
    for branch in schema["oneOf"]:
        properties = branch["properties"]
        first = _target(properties["configuration"])
        operations = [_target(one) for one in properties["operations"]["items"]["oneOf"]]
        lines += [f"## {properties['contract']['const']}", ""]
        for name in (first, *_needed(schema, first, operations), *operations):
            if name not in shown:
                shown.add(name)
                lines += [f"### {_title(name)} {{#{_anchor('program', name)}}}", ""]
                lines += _definition(schema["$defs"][name], "program")
    return "\n".join(lines)


def _read(file: Path) -> Schema:
    made: Schema = json.loads(file.read_text("utf-8"))
    return made


def _needed(schema: Schema, *roots: Any) -> list[str]:
    """Definitions that the roots refer to, in the order they are met, without the roots."""
    start = [root for each in roots for root in ([each] if isinstance(each, str) else each)]
    waiting, found = list(start), list[str]()
    while waiting:
        text = json.dumps(schema["$defs"][waiting.pop(0)])
        for name in schema["$defs"]:
            if f'"#/$defs/{name}"' in text and name not in (*start, *found):
                found.append(name)
                waiting.append(name)
    return found


def _title(name: str) -> str:
    return name.partition(".")[2] or name


def _definition(schema: Schema, area: str) -> Iterator[str]:
    if schema.get("description"):
        yield from (schema["description"].replace("``", "`"), "")
    for option in (schema, *schema.get("anyOf", ())):
        if option.get("properties"):
            yield from _fields(option, area)
            return
    if "properties" not in schema:
        yield from (f"{_type(schema, area)}.", "")


def _fields(schema: Schema, area: str, inside: str = "") -> list[str]:
    """A table of the fields of an object; those of objects in it follow, indented by their path."""
    lines = [] if inside else ["| field | value | |", "|---|---|---|"]
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        if name == "op" and "const" in field:
            lines.append(f"| `op` | `{field['const']}` | |")
            continue
        about = field.get("description", "").replace("``", "`").replace("|", "\\|")
        if "default" in field:
            about = f"{about} Default `{json.dumps(field['default'])}`.".strip()
        elif name not in required:
            about = f"{about} May be missing.".strip()
        lines.append(f"| `{inside}{name}` | {_type(field, area)} | {about} |")
        lines += _nested(field, area, f"{inside}{name}")
    return lines if inside else [*lines, ""]


def _nested(field: Schema, area: str, path: str) -> list[str]:
    if field.get("properties"):
        return _fields(field, area, f"{path}.")
    items = field.get("items")
    if isinstance(items, dict) and items.get("properties"):
        return _fields(items, area, f"{path}[].")
    return []


def _type(field: Schema, area: str) -> str:
    if "$ref" in field:
        target = _target(field)
        return f"[{_title(target)}](#{_anchor(area, target)})"
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        values = [f"`{value}`" for value in field["enum"][:_VALUES_SHOWN]]
        return ", ".join(values) + (", ..." if len(field["enum"]) > _VALUES_SHOWN else "")
    for key in ("anyOf", "oneOf"):
        if key in field:
            return " or ".join(_type(each, area) for each in field[key])
    if field.get("type") == "array":
        items = field.get("items") or field.get("prefixItems")
        return f"list of {_type(items, area)}" if isinstance(items, dict) and items else "list"
    kind = field.get("type", "anything")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _target(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _anchor(area: str, name: str) -> str:
    return f"{area}-{name}".lower().replace(".", "-").replace("_", "-")
