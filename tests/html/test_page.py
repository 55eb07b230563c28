"""The page as text: what it says, that it is whole, and that nothing in a report can change it."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from page_stories import entry, failure, kill, kills, large, long_story, report

from vmm_conformance.reporting.html.columns import MEANINGS, SIGNS
from vmm_conformance.reporting.html.documents import Document, DocumentError, document, read
from vmm_conformance.reporting.html.layout import ROW
from vmm_conformance.reporting.html.page import render
from vmm_conformance.reporting.verdicts import OVERALL_SIGNS, Overall

VOID = {"meta", "input", "link", "br", "hr", "img"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<!--]]>{{7*7}}"


class Outline(HTMLParser):
    """The elements of a page: their tags, attributes and texts; fails on ones that are not closed in turn."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        self.texts.append(data)

    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if attributes.get("id")]


def page(*data):
    return render([document(each, f"night-{n}") for n, each in enumerate(data, 1)])


def words(text):
    return " ".join(" ".join(Outline(text).texts).split())


def broken(**changes):
    return report(
        entry("ALLOCATOR-1"), entry("ALLOCATOR-5", "fail", failure(), evidence="inferred"),
        entry("ALLOCATOR-7", "waived", failure(id="ALLOCATOR-7"), reason="issue 7"),
        entry("ALLOCATOR-9", "not exercised", reason="no program reached it"), **changes,
    )  # fmt: skip


def test_nothing_takes_the_focus_when_the_page_opens():
    """Of such a thing a browser complains, now and then, where the address names a place on the page."""
    assert "autofocus" not in page(broken()).partition("<script")[0]


def test_programs_are_counted_without_those_of_failure_points_which_are_planned_as_points():
    data = report(entry("ALLOCATOR-1"))
    (item,) = data["subjects"][0]["items"]
    data["subjects"][0]["items"].append(item | {"id": "points/1[thing]", "kind": "points", "executed": 14})
    assert " 10 of 10 " in words(page(data))


def test_failure_points_are_told_by_contract_and_by_item():
    data = report(entry("ALLOCATOR-1"))
    (item,) = data["subjects"][0]["items"]
    assert "Failure points" not in words(page(data))
    for number in (1, 2):
        points = {"reached": 1000 * number, "covered": 7, "undo_reached": 90, "undo_covered": number}
        more = {"id": f"allocator/points/{number}[<thing>]", "kind": "points", "points": points}
        data["subjects"][0]["items"].append(item | more)
    told = words(page(data))
    assert "thing 1.2 over host (emulated, no device) of covered" in told
    assert "allocator 14 3,000 3 180 allocator/points/1[<thing>] 7 1,000 1 90 allocator/points/2[" in told


def test_the_banner_has_the_verdict_its_denominator_waivers_and_what_is_emulated():
    told = words(page(broken()))
    assert "✗ not conformant 3 of 4 expected invariants were judged, 1 missing; 1 waived." in told
    assert "real: false" in told
    assert "documented must 1 0 1 1 3" in told
    assert "inferred must 0 1 0 0 1" in told


@pytest.mark.parametrize("overall", list(Overall), ids=str)
def test_the_banner_says_what_its_verdict_means(overall):
    waived = int(overall is Overall.WAIVED)
    one = entry("ALLOCATOR-1", "waived", failure(id="ALLOCATOR-1")) if waived else entry("ALLOCATOR-1")
    told = words(page(report(one, overall=overall.value)))
    assert f"{OVERALL_SIGNS[overall]} {overall.told(waived)} 1 of 1 expected" in told
    assert f"were judged; {waived} waived. {MEANINGS[overall.value]} Programs of" in told


def test_waivers_are_listed_with_what_became_of_them():
    told = {
        "reason": HOSTILE, "link": "https://example.org/issues/7", "expires": "2027-06-30", "subject": "thing",
        "subject_versions": "", "driver": "*", "driver_versions": {}, "device": "*", "message": "*", "file": "",
        "program": None,
    }  # fmt: skip
    settled = [{"subject": "thing", "state": "passes", "sentence": "the waiver for ALLOCATOR-5 passes: take it out"}]
    data = broken()
    data["waivers"] = {
        "today": "2026-12-01",
        "entries": [
            told | {"invariant": "ALLOCATOR-5", "settled": settled},
            told | {"invariant": "STEP-87", "settled": []},
        ],
    }
    outline = Outline(page(data))
    text = " ".join(" ".join(outline.texts).split())
    assert "night-1, on 2026-12-01" in text
    assert "ALLOCATOR-5 ✗ passes thing the waiver for ALLOCATOR-5 passes: take it out" in text
    assert "STEP-87 ✗ matches nothing thing over any driver the waiver for STEP-87 matches nothing: thing over" in text
    links = {a["href"] for tag, a in outline.elements if tag == "a" and (a.get("href") or "").startswith("http")}
    assert links == {"https://example.org/issues/7"}
    assert not any(tag == "img" for tag, _ in outline.elements)


def test_a_waiver_with_another_link_than_an_address_is_no_report():
    data = broken()
    data["waivers"] = {"today": "2026-12-01", "entries": [{"link": "javascript:alert(1)"}]}
    with pytest.raises(ValueError, match=r"\$.waivers"):
        document(data, "night")


def test_a_run_on_a_device_says_so():
    told = words(page(report(entry("ALLOCATOR-1"), driver="hip", real=True)))
    assert "real: true" in told
    assert "real: false" not in told


def test_a_failure_has_its_sentence_program_outcomes_and_replay_command():
    told = words(page(broken()))
    assert "What ALLOCATOR-5 says must hold. Source: a document" in told
    assert "▶1 deallocate ok expected: a wait" in told
    assert "vmm-conformance replay programs/ALLOCATOR-5-thing.json --subject thing" in told
    assert "unmap takes away memory at A+0x0" in told


def test_both_pictures_name_the_same_operations():
    outline = Outline(page(report(entry("ALLOCATOR-5", "fail", failure()))))
    bands = [a["data-op"] for tag, a in outline.elements if tag == "g" and "data-op" in a]
    rows = [a["data-op"] for tag, a in outline.elements if tag == "tr" and "data-op" in a]
    assert bands == ["-1", "0", "1", "2"] * 2
    assert rows == ["0", "1", "2"]
    assert any("missing" in (a.get("class") or "") for _, a in outline.elements)


def test_consequences_are_folded_under_their_root():
    data = report(
        entry("ALLOCATOR-5", "fail", failure()),
        entry("ALLOCATOR-6", "fail", failure(id="ALLOCATOR-6", consequences=["ALLOCATOR-5"])),
        entry("ALLOCATOR-8", "fail", failure(id="ALLOCATOR-8")),
    )
    text = page(data)
    assert "1 consequence: not seen without ALLOCATOR-5" in words(text)
    folded = text[text.index('class="folded"') :]
    assert 'id="f0-ALLOCATOR-6"' in folded
    assert 'id="f0-ALLOCATOR-8"' in folded[folded.index("</details>") :]


def test_the_latest_report_of_a_version_is_a_column_and_another_version_another():
    versions = [report(entry("ALLOCATOR-1"), version=version) for version in ("1.0", "1.1", "1.1")]
    outline = Outline(page(*versions))
    assert [a["href"] for tag, a in outline.elements if tag == "a" and a.get("href", "").startswith("#s")][-2:] == [
        "#s0",
        "#s1",
    ]
    assert "night-3" in words(page(*versions))


def test_over_time_the_first_failing_report_is_named():
    good, bad = report(entry("ALLOCATOR-1"), entry("ALLOCATOR-5")), report(
        entry("ALLOCATOR-1"), entry("ALLOCATOR-5", "fail", failure()), version="1.3"
    )
    told = words(page(good, bad, good))
    assert "First failing: ALLOCATOR-5 in night-2 (version 1.3)." in told
    assert "night-2 (not in the last)" in told
    assert "The same in all, and not broken: 1 more." in told


def test_what_was_not_exercised_says_how_to_reach_it():
    told = words(page(broken()))
    assert "ALLOCATOR-9 must ○ not exercised no program reached it a program for ALLOCATOR-9" in told


def test_what_several_columns_did_not_reach_is_told_once():
    quiet = entry("ALLOCATOR-9", "not exercised", reason="no program reached it")
    told = words(page(*(report(quiet, spec=f"thing-{n}") for n in range(4)), report(entry("ALLOCATOR-9"), spec="good")))
    assert told.count("a program for ALLOCATOR-9 4 of 5 columns") == 1
    assert "thing-3 1.2 over host: 1 of 1 expected invariants were shown neither to hold nor to be broken" in told
    assert "good 1.2 over host: 0 of 1" not in told


def test_the_kill_matrix_is_a_page_of_its_own():
    text = page(kills(kill(), kill("bad-two", "STEP-90"), kill("bad-three", "STEP-97", killed=False)))
    told = words(text)
    assert "✗ 2 of 3 killed" in told
    assert "Survivors: bad-three (STEP-97; killed with 0 of 1 seeds)" in told
    assert 'id="matrix"' not in text
    assert "bad-one Forgets to wait. STEP-88 ✓ 1 of 1" in told
    assert "What these invariants say STEP-86 Every slot shows its buffer." in told
    assert re.findall(r'class="k-(\w+)" title="STEP-(\d+), bad-(\w+)"', text) == [
        ("also", "86", "one"), ("also", "86", "two"), ("own", "88", "one"), ("own", "90", "two"),
        ("missed", "97", "three"),
    ]  # fmt: skip


def test_reports_and_kill_matrices_go_on_one_page():
    told = words(page(broken(), kills(kill())))
    assert "Kill matrix: night-2" in told
    assert "What is broken" in told


def test_nothing_at_all_is_a_page_too():
    assert "nothing was run" in words(render([]))


@pytest.mark.parametrize("place", ["name", "version", "spec", "driver"])
def test_hostile_names_change_nothing(place):
    check_inert(page(report(entry("ALLOCATOR-5", "fail", failure()), **{place: HOSTILE})))


@pytest.mark.parametrize("place", ["message", "expected", "actual", "repeats", "outcomes", "program", "picture"])
def test_hostile_failures_change_nothing(place):
    made = failure()
    if place == "outcomes":
        made.outcomes = [HOSTILE] * 2
    elif place == "program":
        made.program["operations"] = [{"op": HOSTILE, HOSTILE: HOSTILE}, HOSTILE]
        made.program["configuration"] = {HOSTILE: [HOSTILE]}
    elif place == "picture":
        for row in made.picture["rows"]:
            row["calls"], row["who"] = [HOSTILE], HOSTILE
        for thing in (*made.picture["lanes"], *made.picture["works"], *made.picture["marks"]):
            thing.update(dict.fromkeys({"name", "who", "text", "fault"} & set(thing), HOSTILE))
        for life in made.picture["ranges"]:
            life["note"] = life["who"] = life["rights"] = HOSTILE
    else:
        setattr(made, place, HOSTILE)
    check_inert(page(report(entry("ALLOCATOR-5", "fail", made))))


def test_hostile_reasons_labels_and_mutants_change_nothing():
    data = report(entry("ALLOCATOR-9", "not exercised", reason=HOSTILE))
    data["options"]["prefix"] = data["environment"]["platform"] = HOSTILE
    data["environment"]["packages"] = {HOSTILE: HOSTILE}
    check_inert(render([Document(HOSTILE, data), Document(HOSTILE, data)]))
    check_inert(page(kills(kill(HOSTILE, by=HOSTILE, first=HOSTILE, found=[HOSTILE]))))


def check_inert(text):
    """The page has the elements of a page about nothing hostile, and shows the hostile text as text."""
    outline = Outline(text)
    assert [tag for tag, _ in outline.elements].count("script") == 2
    assert not [tag for tag, _ in outline.elements if tag in ("img", "iframe", "object", "link")]
    handlers = [name for _, attributes in outline.elements for name in attributes if name.startswith("on")]
    assert not handlers
    assert "{{7*7}}" in text
    assert "alert(1)</script>" not in text.replace("&lt;", "")


def test_nothing_is_fetched():
    text = page(broken())
    outline = Outline(text)
    for tag, attributes in outline.elements:
        for name in ("src", "href", "data", "action", "xlink:href"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
    assert "url(http" not in text
    assert "@import" not in text
    policy = next(a["content"] for tag, a in outline.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_ids_are_unique_and_links_lead_somewhere():
    outline = Outline(page(broken(), report(entry("ALLOCATOR-1"), version="2"), kills(kill())))
    ids = outline.ids()
    assert len(ids) == len(set(ids))
    for tag, attributes in outline.elements:
        if tag == "a" and attributes.get("href"):
            assert attributes["href"].removeprefix("#") in ids, attributes


def test_no_style_is_beside_the_style_sheet():
    """The page's policy would refuse it."""
    assert not [a for _, a in Outline(page(broken())).elements if "style" in a]


def test_every_verdict_has_a_sign_and_a_word():
    names = ("pass", "fail", "waived", "not exercised", "not applicable", "unknown", "crash", "timeout")
    data = report(*(entry(f"A-{n}", v, *([failure()] if v in ("fail", "waived") else [])) for n, v in enumerate(names)))
    text = page(data)
    assert re.findall(r'<td class="v-([a-z-]+)"><a [^>]*><b class="u">([^<]+)</b>', text) == [
        (name.replace(" ", "-"), name) for name in names
    ]
    assert "; 1 of 8 invariants not applicable</p>" in text  # by the subject or by the driver: the rows say why
    signs = dict(re.findall(r'\.matrix \.v-([a-z-]+) a::before { content: "(.)" / ""; }', text))
    assert signs == {name.replace(" ", "-"): sign for name, sign in SIGNS.items()}


def test_a_large_report_is_small_and_quick():
    """400 invariants by 12 columns with 50 failures; the time is the processor's, which others do not share."""
    documents = [document(json.loads(json.dumps(each)), str(n)) for n, each in enumerate(large())]
    render(documents[:1])  # the templates are compiled once
    start = time.process_time()
    text = render(documents)
    assert time.process_time() - start < 2
    assert len(text.encode()) < 2_000_000
    assert text.count('class="u"') == 400 * 12
    assert text.count('class="failure"') == 50


def test_a_long_program_stays_legible():
    """60 operations over 8 reservations and 4 streams: rows as high as text, and no two ranges on one place."""
    text = page(report(entry("ALLOCATOR-5", "fail", failure(long_story()))))
    outline = Outline(text)
    bands = [a for tag, a in outline.elements if tag == "g" and (a.get("class") or "").startswith("band")]
    assert len(bands) == 2 * 62
    assert ROW >= 14
    pictures = [a for tag, a in outline.elements if tag == "svg" and a.get("role") == "img"]
    assert all(int(a["width"]) <= 720 for a in pictures)
    places = re.findall(r'<g class="reservation[^"]*"><rect x="([\d.]+)" y="\d+" width="([\d.]+)"', text)
    edges = sorted((float(x), float(x) + float(w)) for x, w in places)
    assert len(edges) == 8
    assert all(first[1] <= second[0] + 0.2 for first, second in pairwise(edges))
    assert all(right - left >= 12 for left, right in edges)
    assert "8 works" not in text


def test_the_same_report_makes_the_same_page():
    assert page(broken()) == page(broken())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Expecting value"),
        ("[1, 2]", "$: neither a report (report.json) nor a kill matrix"),
        ('{"format": "vmm-conformance report"}', "$: 'version' is missing"),
        ('{"kills": []}', "$: 'format' is missing"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_file_that_is_no_report_is_named(tmp_path, text, complaint):
    file = tmp_path / "odd.json"
    file.write_text(text)
    with pytest.raises(DocumentError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert complaint in str(caught.value)


def test_a_damaged_report_says_where(tmp_path):
    data = report(entry("ALLOCATOR-1"))
    data["subjects"][0]["invariants"][0]["verdict"] = "fine"
    (tmp_path / "report.json").write_text(json.dumps(data))
    with pytest.raises(DocumentError, match=r"\$\.subjects\[0\]\.invariants\[0\]\.verdict: 'fine', accepted: 'pass'"):
        read(tmp_path)


def test_a_report_goes_by_its_folders_name(tmp_path):
    folder = tmp_path / "night-7"
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps(report(entry("ALLOCATOR-1"))))
    (tmp_path / "other.json").write_text(json.dumps(kills(kill())))
    assert [read(path).label for path in (folder, folder / "report.json", tmp_path / "other.json")] == [
        "night-7",
        "night-7",
        "other",
    ]


def test_a_missing_file_says_what_to_give(tmp_path):
    with pytest.raises(DocumentError, match=r"give a report\.json or a folder with one"):
        read(tmp_path / "nothing.json")


def test_templates_never_switch_escaping_off():
    folder = Path(__file__).parents[2] / "vmm_conformance" / "reporting" / "html" / "templates"
    for file in folder.glob("*.html"):
        text = file.read_text("utf-8")
        assert "|safe" not in text.replace(" ", ""), file.name
        assert "autoescape" not in text, file.name
