"""What is mapped where, and who may use it: RES-7, 11, 12, 13 and 17, MAP-25, and REMAP-30 to 35 and 40."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from vmm_conformance.checkers.reservation_calls import MAPPING, NOT_SEEN, RANGED, Call, Family, Slice, Step
from vmm_conformance.checkers.reservation_requests import cuts
from vmm_conformance.contracts import Access, Range
from vmm_conformance.history.events import Event

GRANTED, OFFSETS, ALIGNED, WHOLE, BATCH = "RES-7", "RES-11", "RES-12", "RES-13", "RES-17"
PLACED = "MAP-25"
UNTOUCHED, OTHERS, SHOWN, UNMAPPED_FIRST, ACCESS, COALESCED, TRUSTED = (
    "REMAP-30", "REMAP-31", "REMAP-32", "REMAP-33", "REMAP-34", "REMAP-35", "REMAP-40",
)  # fmt: skip

READ_WRITE: Final = Access.READ_WRITE.value


class Mappings(Family):
    """Judges each driver call for its shape, and each mapping call for what it has achieved."""

    def step(self, step: Step, call: Call) -> None:
        """The shape of one driver call."""
        kind = step.event.kind
        if kind in RANGED and kind != "address_free":
            self._aligned(step, call)
        if kind == "unmap":
            self._whole(step, call)
        elif kind == "map":
            self._offset(step, call)
            if call.name == "remap":
                self._free(step, call)

    def returned(self, call: Call, event: Event) -> None:
        """What a call that went well has achieved."""
        if call.good and call.sound and (call.name in (*MAPPING, "remap", "move", "assign")):
            self._placed(call, event)
        if call.good and not call.wrong and cuts(call):
            self._cut(call, event)
        if not self.ledger.traced or not call.sound or not call.slices:
            return
        if call.name in MAPPING and call.good:
            self._mapped(call, event)
        elif call.name == "remap":
            self._remapped(call, event)

    # -- one driver call

    def _aligned(self, step: Step, call: Call) -> None:
        minimum, (address, size) = self.ledger.minimum, step.range
        self.judge.expect(
            ALIGNED, step.event, size > 0 and address % minimum == 0 and size % minimum == 0,
            f"{call} calls {step.event.kind}({address:#x}, {size})", range=step.range,
            expected=f"address and size in whole granules of {minimum} bytes", actual=f"{address:#x}+{size}",
        )  # fmt: skip

    def _whole(self, step: Step, call: Call) -> None:
        """An unmap takes mappings whole."""
        if not step.touched:
            return
        start, end = step.range.address, step.range.end
        cut = [m for m in step.touched if m.address < start or m.address + m.size > end]
        self.judge.expect(
            WHOLE, step.event, not cut, f"{call} unmaps a part of a mapping", range=step.range,
            expected="an unmap covers whole mappings",
            actual=f"{start:#x}+{end - start} of {cut[0].address:#x}+{cut[0].size}" if cut else "",
        )  # fmt: skip

    def _cut(self, call: Call, event: Event) -> None:
        """A remap has gone well that no driver can do: the rest of a mapping has gone with the part."""
        assert call.owned is not None
        self.judge.fail(
            WHOLE, event, f"{call} went well, although {cuts(call)}", range=call.owned.range,
            expected="a remap that would need a part of a mapping to be unmapped is refused", actual="it went well",
        )  # fmt: skip

    def _offset(self, step: Step, call: Call) -> None:
        """The offset into the memory is that of the descriptor."""
        if call.reserved is None:
            return
        offset = step.event.args[0] - call.reserved.base
        one = next((one for one in call.slices if one.offset == offset), None)
        if one and one.offset:
            passed = step.event.args[3]
            self.judge.expect(
                OFFSETS, step.event, passed == one.skip, f"{call} maps {passed} bytes into the memory",
                expected=f"the descriptor's allocation_offset, {one.skip}", actual=f"{passed}", range=step.range,
            )  # fmt: skip

    def _free(self, step: Step, call: Call) -> None:
        """A remap unmaps before it maps."""
        self.judge.expect(
            UNMAPPED_FIRST, step.event, not step.touched, f"{call} maps where something is mapped", range=step.range,
            expected="the slice is unmapped first",
            actual=f"{step.touched[0].address:#x}+{step.touched[0].size} is mapped" if step.touched else "",
        )  # fmt: skip

    # -- where a mapping lies

    def _placed(self, call: Call, event: Event) -> None:
        number: int = call.about.get("made") or call.about["target"]
        owned = self.ledger.owners.get(number)
        if owned is None:
            return
        null, range = call.views.get(number, NOT_SEEN)
        self.judge.expect(
            PLACED, event, null is False and range == owned.range, f"{call} returned a mapping", range=owned.range,
            expected=f"it lies at {owned.range.address:#x} and has {owned.size} bytes",
            actual="it is null" if null else f"{range.address:#x}+{range.size}" if range else "nothing",
        )  # fmt: skip

    # -- map_to, map_one

    def _mapped(self, call: Call, event: Event) -> None:
        assert call.reserved is not None
        wrong = self._not_shown(call, call.slices)
        starts = [step.range.address for step in call.of("map") if not step.event.status]
        if not wrong and any(one > behind for one, behind in pairwise(starts)):
            wrong = "the slices were not mapped in order"
        self.judge.expect(
            BATCH, event, not wrong, f"{call} went well", actual=wrong, range=call.reserved.at(*call.place),
            expected="each slice shows its memory at its place, mapped in order",
        )  # fmt: skip
        granted = self._granted(call, event)
        grouped = self._grants(call, [call.place] if self._spans else [Range(s.offset, s.size) for s in call.slices])
        if granted and grouped:
            self.judge.fail(
                BATCH, event, f"{call} grants rights in its own way: {grouped}", range=call.reserved.at(*call.place),
                expected="one set_access over all, for each device" if self._spans else "one for each mapping, "
                "since the driver takes one at a time", actual=grouped,
            )  # fmt: skip

    @property
    def _spans(self) -> bool:
        """Whether one set_access serves several mappings."""
        takes: bool = self.ledger.takes.set_access_spans_mappings
        return takes and self.ledger.header["scopes"]["set_access"] != "slice"

    def _not_shown(self, call: Call, slices: Iterable[Slice]) -> str:
        """What is wrong with the memory behind ``slices``; nothing if each shows what it should."""
        assert call.reserved is not None
        for one in slices:
            parts = self.state.parts(call.reserved.base + one.offset, one.size)
            allocation = self.ledger.allocations.get(one.memory)
            if sum(part.high - part.low for part in parts) < one.size:
                return f"not all of the slice at {one.offset} is mapped"
            if allocation is None or allocation.memory is None:
                continue
            at = one.skip
            for part in parts:
                if part.memory is not allocation.memory or part.low != at:
                    return f"the slice at {one.offset} shows byte {part.low} of handle {part.memory.handle}"
                at += part.high - part.low
        return ""

    def _granted(self, call: Call, event: Event) -> bool:
        assert call.reserved is not None
        lacking = self._lacking(call, call.slices)
        return self.judge.expect(
            GRANTED, event, not lacking, f"{call} went well", range=call.reserved.at(*call.place), actual=lacking,
            expected=f"read and write for the devices {self.ledger.reach[call.reserved.device]}",
        )  # fmt: skip

    def _lacking(self, call: Call, slices: Iterable[Slice]) -> str:
        assert call.reserved is not None
        for one in slices:
            for mapping in self.state.mappings_in(call.reserved.base + one.offset, one.size):
                for device in self.ledger.reach[call.reserved.device]:
                    right = mapping.rights.get(device, 0)
                    if right != READ_WRITE:
                        return f"device {device} has rights {int(right)} at {one.offset}"
        return ""

    def _grants(self, call: Call, wanted: list[Range]) -> str:
        """How the set_access calls differ from ``wanted`` (places in the reservation), device by device."""
        assert call.reserved is not None
        places: dict[int, list[Range]] = {device: [] for device in self.ledger.reach[call.reserved.device]}
        for step in call.of("set_access"):
            for device, _ in step.event.args[2]:
                if not step.event.status and device in places:
                    start, size = step.range
                    places[device].append(Range(start - call.reserved.base, size))
        for device, granted in places.items():
            if sorted(granted) != sorted(wanted):
                return f"for device {device} over {_listed(granted)} where {_listed(wanted)} was expected"
        return ""

    # -- remap

    def _remapped(self, call: Call, event: Event) -> None:
        required = [one for one in call.slices if one.required]
        if not required:
            self._nothing(call, event)
        else:
            self._others(call, event, required)
        if call.good:
            self._trusted(call, event)
            if required:
                self._shown(call, event, required)
                self._access(call, event, required)
                self._coalesced(call, event, required)

    def _nothing(self, call: Call, event: Event) -> None:
        """With nothing to change, nothing is called."""
        self.judge.expect(
            UNTOUCHED, event, not call.steps, f"{call} with nothing to change makes driver calls",
            expected="no driver call", actual=", ".join(step.event.kind for step in call.steps),
        )  # fmt: skip

    def _others(self, call: Call, event: Event, required: list[Slice]) -> None:
        """Until something fails, only required slices are unmapped and mapped."""
        assert call.reserved is not None
        runs = _runs(required)
        if len(required) < len(call.slices):
            self.judge.witness(OTHERS)
        for step in call.before(call.cause):
            if step.event.kind not in ("unmap", "map"):
                continue
            unmapped = [Range(mapping.address, mapping.size) for mapping in step.touched]
            for address, size in unmapped if step.event.kind == "unmap" else [step.range]:
                start = address - call.reserved.base
                if not any(run.address <= start and start + size <= run.end for run in runs):
                    self.judge.fail(
                        OTHERS, step.event, f"{call} makes {step.event.kind} calls on what is to stay as it is",
                        expected=f"unmap and map in {_listed(runs)} alone", actual=f"{start}+{size}", range=step.range,
                    )  # fmt: skip

    def _trusted(self, call: Call, event: Event) -> None:
        """Whatever an unchanged slice is said to show, it stays as it is."""
        assert call.owned is not None
        lying = [one for one in call.slices if call.lies(one)]
        if not lying:
            return
        pieces = [p for p in call.owned.pieces if any(one.offset <= p.offset < one.end for one in lying)]
        was = [Slice(p.offset, p.skip, p.size, p.allocation.id) for p in pieces]
        wrong = self._not_shown(call, was)
        self.judge.expect(
            TRUSTED, event, not wrong, f"{call} went well", expected="slices that need no remap show what they did",
            actual=wrong, range=call.owned.range,
        )  # fmt: skip

    def _shown(self, call: Call, event: Event, required: list[Slice]) -> None:
        assert call.owned is not None
        wrong = self._not_shown(call, required)
        self.judge.expect(
            SHOWN, event, not wrong, f"{call} went well", expected="each required slice shows its new memory",
            actual=wrong, range=call.owned.range,
        )  # fmt: skip

    def _access(self, call: Call, event: Event, required: list[Slice]) -> None:
        """Rights on each changed slice, granted where the subject says that it grants them."""
        assert call.owned is not None
        scope = self.ledger.header["scopes"]["set_access"]
        wrong = self._lacking(call, required)
        whole = Range(call.owned.offset, call.owned.size)
        if not wrong and scope == "full" and self._spans:
            wrong = self._grants(call, [whole])
        elif not wrong:
            places = [whole] if scope == "full" else _runs(required)
            wrong = self._outside(call, places)
        self.judge.expect(
            ACCESS, event, not wrong, f"{call} went well", range=call.owned.range, actual=wrong,
            expected="rights for all in reach, behind the maps: "
            + ("once over the whole range" if scope == "full" else "on the changed slices, once"),
        )  # fmt: skip

    def _outside(self, call: Call, places: list[Range]) -> str:
        """A set_access that leaves ``places``, or is there twice."""
        assert call.reserved is not None
        seen: set[tuple[int, int]] = set()
        for step in call.of("set_access"):
            start, size = step.range.address - call.reserved.base, step.range.size
            if step.event.status:
                continue
            if not any(place.address <= start and start + size <= place.end for place in places):
                return f"rights are set on {start}+{size}, outside of {_listed(places)}"
            grants = {(start, device) for device, _ in step.event.args[2]}
            if grants & seen:
                return f"rights are set on {start}+{size} twice"
            seen |= grants
        return ""

    def _coalesced(self, call: Call, event: Event, required: list[Slice]) -> None:
        """Slices that touch share the calls that the subject says they share."""
        assert call.reserved is not None
        base, scopes, takes = call.reserved.base, self.ledger.header["scopes"], self.ledger.takes
        runs, single = _runs(required), [Range(one.offset, one.size) for one in required]
        wrong = ""
        if scopes["set_access"] != "full":
            wrong = self._grants(call, runs if self._spans else single)
        together = scopes["unmap"] == "run" and takes.unmap_spans_mappings
        unmaps = [step for step in call.of("unmap") if not step.event.status]
        unmapped = [Range(step.range.address - base, step.range.size) for step in unmaps]
        if not wrong and together and sorted(unmapped) != runs:
            wrong = f"unmap over {_listed(unmapped)} where {_listed(runs)} was expected"
        elif not wrong and not together and self._several(unmaps, single, base):
            wrong = f"unmap over {_listed(unmapped)} takes several mappings at once"
        if len(runs) < len(single):
            self.judge.witness(COALESCED)
        if wrong:
            self.judge.fail(
                COALESCED, event, f"{call} groups its calls in another way than declared",
                expected=f"set_access by {scopes['set_access']}, unmap by {scopes['unmap']}, if the driver takes that",
                actual=wrong, range=call.owned.range if call.owned else None,
            )  # fmt: skip

    def _several(self, unmaps: list[Step], single: list[Range], base: int) -> bool:
        """Whether an unmap takes more than one mapping, and more than one slice."""
        several = (step.range for step in unmaps if len(step.touched) > 1)
        return any(Range(address - base, size) not in single for address, size in several)


def _runs(slices: Iterable[Slice]) -> list[Range]:
    """The maximal runs of slices that touch, as offset and size."""
    runs: list[Range] = []
    for one in slices:
        if runs and runs[-1].end == one.offset:
            runs[-1] = Range(runs[-1].address, runs[-1].size + one.size)
        else:
            runs.append(Range(one.offset, one.size))
    return runs


def _listed(places: Iterable[Range]) -> str:
    return ", ".join(f"{place.address}+{place.size}" for place in places) or "nothing"
