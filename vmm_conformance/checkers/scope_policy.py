"""Which buffers are called persistent, and when: POLICY-135 to 142, and which path a run must take.

The oracle works from what the caller saw: the final tables of the runs that went well, and whether the allocator
knew their addresses.
"""

from __future__ import annotations

from vmm_conformance.checkers.scope_facts import Family, Request, Scope, Track
from vmm_conformance.contracts import PROFILED_RUNS, BufferKind, Range, RemapMode
from vmm_conformance.history.events import Event

PLAIN, TEMPS, WATCHED, ONCE = "POLICY-135", "POLICY-136", "POLICY-137", "POLICY-138"
STEADY, SHARED, NOTHING, LAYOUT = "POLICY-139", "POLICY-140", "POLICY-141", "POLICY-142"


class Profile:
    """What a track's runs have shown. ``doubtful`` are parameters of which it cannot be told whether the
    allocator knew them at the time; once the subject has decided, ``selected`` is what it made of those."""

    def __init__(self) -> None:
        self.runs = 0
        self.seen: dict[int, Range] = {}
        self.moved: set[int] = set()
        self.lost: set[int] = set()
        self.foreign: set[int] = set()
        self.sharing: set[int] = set()
        self.doubtful: frozenset[int] = frozenset()
        self.selected: frozenset[int] | None = None
        self.persistent: tuple[int, ...] | None = None
        """What was promised first."""
        self.addresses: dict[int, int] = {}
        """Where the promised buffers were first."""


class Policies(Family):
    """Follows every track's profile and judges what ``execute`` is told."""

    def profile(self, track: Track) -> Profile:
        """The profile of a track."""
        if track.policy is None:
            track.policy = Profile()
        found: Profile = track.policy
        return found

    # -- the path

    def created(self, scope: Scope) -> None:
        """Work out which path this run must take, now that it is its turn."""
        scope.path = self._path(scope)
        if scope.status("create") == "ok" and scope.path in ("watched", "active"):
            scope.track.bound = scope.label
        if scope.enabled is not None and scope.path in ("plain", "active"):
            rule = NOTHING if scope.plan.profiled else TEMPS if scope.path == "active" else PLAIN
            wanted = scope.path == "active"
            self.judge.expect(
                rule, scope.calls["create"].event, scope.enabled is wanted,
                f"{scope.name} says va_remap_enabled={scope.enabled}", expected=f"{wanted}", actual=f"{scope.enabled}",
            )  # fmt: skip

    def _path(self, scope: Scope) -> str:
        track, plan = scope.track, scope.plan
        if not plan.selects or not self.facts.vmm:
            return "plain"
        profile = self.profile(track)
        wrong = scope.stream not in self.facts.own_streams or track.bound not in (None, scope.label)
        if profile.selected == frozenset():
            return "any" if wrong or profile.doubtful else "plain"
        if wrong:
            return "refused"
        if not plan.profiled:
            return "active"
        if profile.selected is None and profile.runs >= PROFILED_RUNS:
            self._decide(scope, profile)
        if profile.selected is None:
            return "watched"
        if not profile.selected:
            return "any" if profile.doubtful else "plain"
        return "active"

    def _decide(self, scope: Scope, profile: Profile) -> None:
        """What the runs so far allow to be remapped."""
        plan = scope.plan
        stable = [i for i in plan.candidates if i not in profile.moved and i not in profile.lost]
        parameters = [i for i in stable if plan.is_parameter(i)]
        profile.foreign = {i for i in parameters if i not in scope.owned_after}
        profile.doubtful = frozenset(i for i in parameters if (i in scope.owned_before) is not (i in scope.owned_after))
        known = [i for i in parameters if i not in profile.foreign or i in profile.doubtful]
        places = [profile.seen[i].address for i in known]
        profile.sharing = {i for i in known if places.count(profile.seen[i].address) > 1}
        kept = {i for i in stable if i not in profile.foreign | profile.sharing}
        profile.selected = frozenset(kept - profile.doubtful | plan.temps)
        profile.doubtful -= profile.sharing

    # -- what is promised

    def executing(self, scope: Scope, event: Event) -> None:
        """Judge the set of persistent buffers."""
        profile, told = self.profile(scope.track), scope.persistent
        if scope.path == "watched":
            self.judge.expect(
                WATCHED, event, told is None, f"{scope.name} promises something while addresses are still watched "
                f"({profile.runs} runs went well so far)",
                expected=f"no promise before {PROFILED_RUNS} runs have gone well", actual=f"{told}",
            )  # fmt: skip
        elif scope.path in ("plain", "active"):
            self._promised(scope, event, profile)
        if scope.path != "any":
            self._kept(scope, event, profile)

    def _promised(self, scope: Scope, event: Event, profile: Profile) -> None:
        plan, told = scope.plan, scope.persistent
        wanted = self._wanted(scope, profile)
        rule = self._rule(scope)
        if told is None:
            self.judge.expect(rule, event, False, f"{scope.name} promises nothing", expected=f"{wanted}",
            actual="absent")
            return
        chosen = frozenset(told)
        if profile.doubtful:
            taken = chosen & profile.doubtful
            profile.selected = (profile.selected or frozenset()) | taken
            profile.foreign -= taken
            profile.doubtful = frozenset()
            wanted = self._wanted(scope, profile)
        self.judge.expect(
            rule, event, tuple(told) == wanted or self._told_apart(scope, profile, chosen, wanted),
            f"{scope.name} promises the wrong buffers", expected=f"{wanted}", actual=f"{told}",
        )  # fmt: skip
        if plan.profiled and profile.selected is not None:
            self._selection(scope, event, profile, chosen)

    def _wanted(self, scope: Scope, profile: Profile) -> tuple[int, ...]:
        plan = scope.plan
        remapped: frozenset[int] = frozenset()
        if scope.path == "active":
            remapped = (profile.selected or frozenset()) if plan.profiled else plan.temps
        return tuple(sorted(plan.constants | remapped))

    def _rule(self, scope: Scope) -> str:
        if scope.path == "plain":
            return NOTHING if scope.plan.selects and self.facts.vmm else PLAIN
        return WATCHED if scope.plan.profiled else TEMPS

    def _told_apart(self, scope: Scope, profile: Profile, chosen: frozenset[int], wanted: tuple[int, ...]) -> bool:
        """Whether the difference is one that another invariant is about: that one is judged in `_selection`."""
        if scope.path != "active" or not scope.plan.profiled:
            return False
        off = chosen ^ frozenset(wanted)
        named = profile.moved | profile.lost | profile.foreign | profile.sharing | scope.plan.temps
        return bool(off) and off <= named

    def _selection(self, scope: Scope, event: Event, profile: Profile, chosen: frozenset[int]) -> None:
        """What each reason to leave a candidate out demands."""
        for rule, indices, why in (
            (STEADY, profile.moved | profile.lost, "has moved, or was null"),
            (SHARED, profile.foreign | profile.sharing, "cannot be aliased alone"),
        ):
            for index in sorted(indices & scope.plan.candidates):
                self.judge.expect(
                    rule, event, index not in chosen,
                    f"{scope.name} promises buffer {index}, which {why} while watched",
                    expected=f"buffer {index} left out", actual=f"{sorted(chosen)}",
                )  # fmt: skip
        if scope.plan.temps:
            self.judge.expect(
                NOTHING, event, scope.plan.temps <= chosen, f"{scope.name} leaves out temporary buffers",
                expected=f"{sorted(scope.plan.temps)} among them, whatever was watched", actual=f"{sorted(chosen)}",
            )  # fmt: skip

    def _kept(self, scope: Scope, event: Event, profile: Profile) -> None:
        """Once something is promised, the same is promised for ever, and lies where it lay."""
        told = scope.persistent
        if profile.persistent is not None:
            self.judge.expect(
                ONCE, event, told == profile.persistent, f"{scope.name} changes what was promised",
                expected=f"{profile.persistent}", actual=f"{told}",
            )  # fmt: skip
        elif told is not None:
            profile.persistent = told
        for index, (entry, buffer) in enumerate(zip(scope.running, scope.plan.buffers, strict=False)):
            if index not in (told or ()) or buffer.kind is BufferKind.TEMP:
                continue
            now = entry.address
            first = profile.addresses.setdefault(index, now)
            if now != first:
                self.judge.fail(
                    ONCE, event,
                    f"buffer {index} was promised to stay at {first:#x}, and {scope.name} has it elsewhere",
                    expected=f"{first:#x}", actual=f"{now:#x}", range=entry,
                )  # fmt: skip

    # -- what was watched

    def executed(self, scope: Scope) -> None:
        """A run of the profile has gone well: remember where its candidates were."""
        if scope.path != "watched" or not scope.executed:
            return
        profile = self.profile(scope.track)
        for index in scope.plan.candidates:
            entry = scope.final[index]
            if not entry.address:
                profile.lost.add(index)
            elif profile.seen.setdefault(index, entry) != entry:
                profile.moved.add(index)
        profile.runs += 1

    # -- the layout

    def request(self, scope: Scope | None, request: Request) -> None:
        """Nothing is shown that was to be left out (139, 140), and a reservation is as large as it must be (142)."""
        if scope is None or not scope.plan.profiled:
            return
        if request.name == "map" and request.address is not None and scope.path == "active":
            self._shown(scope, request, request.address)
        elif request.name == "create_reservation" and scope.path in ("watched",
        "active") and scope.inside == "generate":
            self._layout(scope, request)

    def _shown(self, scope: Scope, request: Request, source: Range) -> None:
        profile = self.profile(scope.track)
        shown = {index for index, entry in enumerate(scope.final) if entry.address == source.address}
        if not shown or shown & ((profile.selected or frozenset()) | profile.doubtful):
            return
        moved = shown & (profile.moved | profile.lost)
        rule = STEADY if moved else SHARED if shown <= profile.foreign | profile.sharing else WATCHED
        self.judge.fail(
            rule, request.event, f"{scope.name} shows buffer {min(shown)} at a fixed address",
            expected=f"only what was selected: {sorted(profile.selected or ())}", actual=str(request),
            range=request.place,
        )  # fmt: skip

    def _layout(self, scope: Scope, request: Request) -> None:
        """A reservation has room for all that may be selected, and for no more than that (142)."""
        plan, profile = scope.plan, self.profile(scope.track)
        indices = plan.temps | plan.candidates if scope.path == "watched" else profile.selected or frozenset()
        if profile.doubtful:
            return
        wanted, asked = plan.laid_out(indices, scope.granularity), request.details["size"]
        when = "while watching" if scope.path == "watched" else "when all is decided"
        self.judge.expect(
            LAYOUT, request.event, asked == wanted,
            f"{scope.name} reserves {asked} bytes {when}",
            expected=f"{wanted} bytes: whole granules for each of {sorted(indices)}", actual=f"{asked} bytes",
        )  # fmt: skip


def mode_rule(scope: Scope) -> str:
    """The invariant that says what a run of this kind comes to when nothing stands against it."""
    if scope.path == "plain":
        return PLAIN
    return WATCHED if scope.plan.mode is RemapMode.SKIP_PROFILED else TEMPS
