"""How another project uses the vectors: a flag reader of its own against ``flags.json``, and nothing else of ours."""

import json
import re
import sys
from pathlib import Path
from typing import Any

SKIP, COPY = "XLA_VMM_SKIP_REMAP", "XLA_VMM_TMP_COPY_THRESHOLD"
OFF: Any = (False, 0)


def from_environment(revision: str, env: dict[str, str]) -> Any:
    """Skip-remap and copy threshold in the revisions that read variables."""
    skip = not re.fullmatch("0|[Ff][Aa][Ll][Ss][Ee]|[Oo][Ff][Ff]|[Nn][Oo]", env.get(SKIP, ""))
    text = env.get(COPY) or ("1" if revision == "env-auto" else "0")
    number = int(text) if re.fullmatch("[0-9]{1,20}", text) else 2**64
    if number == 1 and revision == "env-auto":
        return skip, "auto"
    return skip, number if number < 2**64 else 0


def from_options(options: dict[str, str]) -> Any:
    """The same in the revision that reads options, which refuses what it cannot read."""
    skip, text = (options.get("skip_remap") or "true").lower(), options.get("copy_threshold_bytes") or "0"
    number = int(text) if re.fullmatch("-?[0-9]{1,19}", text) else 2**63
    if skip not in ("true", "1", "false", "0") or not -(2**63) <= number < 2**63:
        return "refused"
    return skip in ("true", "1"), max(0, number)


def answers(program: dict[str, Any]) -> list[Any]:
    """What the reader makes of each operation; None for a new process, in which variables are read anew."""
    revision, read, made = program["configuration"]["revision"], None, []
    for operation in program["operations"]:
        given: Any = None
        if operation["op"] == "read":
            read = operation.get("environment", {}) if read is None else read
            text = operation.get("options", {})
            given = from_options(text) if revision == "flags" else from_environment(revision, read)
        made.append(given if operation.get("platform", "ROCM") == "ROCM" else OFF)
        read = read if operation["op"] == "read" else None
    return made


def expected(outcome: dict[str, Any]) -> Any:
    """What a vector says of one operation, in the same form."""
    settings = [details for _, name, details in outcome["events"] if name == "settings"]
    if settings:
        return settings[0]["skip_remap"], settings[0]["copy_threshold"]
    return None if outcome["status"] == "ok" else outcome["status"]


if __name__ == "__main__":
    file = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("flags.json")
    vectors = json.loads(file.read_text("utf-8"))["vectors"]
    wrong = [each["id"] for each in vectors if answers(each["program"]) != [*map(expected, each["outcomes"])]]
    print(f"{len(vectors) - len(wrong)} of {len(vectors)} vectors hold; wrong: {', '.join(wrong) or 'none'}")
    sys.exit(bool(wrong))
