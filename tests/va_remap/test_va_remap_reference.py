"""The reference's scopes, policies and command buffers, rule by rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from va_histories import (
    ALWAYS,
    CONSTANT,
    DONATABLE,
    NULLABLE,
    OUTPUT,
    PARAMETER,
    PROFILED,
    TEMP,
    TEMPS,
    G,
    details,
    plan,
    ran,
)

from vmm_conformance.contracts import (
    BufferCommand,
    BufferSpec,
    Code,
    CommandBuffer,
    Range,
    RemapMode,
    ScopedExecutable,
    SubjectError,
)
from vmm_conformance.history.events import History
from vmm_conformance.programs.va_remap import (
    Bind,
    Close,
    Coarsen,
    Ending,
    ExecutablePlan,
    Fail,
    Foreign,
    Nullify,
    Result,
    Run,
    Share,
)
from vmm_reference.command_buffer import CommandBufferRunner
from vmm_reference.policies import REMOVED, Classes, Profile, classify, parse_update_mode
from vmm_reference.remapping import Remapping, RemappingAllocator, Slice

R = Run()
WATCHED = (R, R, R)
COLLECTIVE = BufferSpec(G, space=1)


def executable(planned: ExecutablePlan) -> ScopedExecutable:
    return ScopedExecutable(planned.buffers, planned.commands, planned.mode)


def sets(history: History) -> list[tuple[int, ...] | None]:
    """What each execution was told to be persistent."""
    return [each["persistent"] for each in details(history, "executing")]


def requests(history: History, *names: str) -> list[str]:
    return [each["name"] for each in details(history, "memory") if each["name"] in names]


def answers(history: History) -> list[str]:
    return [event.args[0]["code"] or event.args[0]["status"] for event in history if event.kind == "end"]


# -- names and classes


def test_modes_by_name() -> None:
    assert parse_update_mode(None) is RemapMode.ALWAYS_UPDATE
    assert [parse_update_mode(mode.value) for mode in RemapMode] == list(RemapMode)


@pytest.mark.parametrize("name", [*REMOVED, "", "skip_temp", "NONSENSE"])
def test_other_names_are_refused_by_name(name: str) -> None:
    with pytest.raises(SubjectError) as caught:
        parse_update_mode(name)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert repr(name) in caught.value.message
    assert ("removed" in caught.value.message) is (name in REMOVED)
    assert "SKIP_PROFILED" in caught.value.message


def test_classes_are_what_commands_name_and_is_not_empty() -> None:
    buffers = (TEMP, OUTPUT, CONSTANT, PARAMETER, TEMP, BufferSpec(0))
    commands = (BufferCommand((3, 2), (0, 5)), BufferCommand((), (1,)))
    assert classify(executable(plan(TEMPS, *buffers, commands=commands))) == Classes((2,), (0,), (1, 3))


# -- profiles


def profile(*buffers: BufferSpec) -> Profile:
    made = executable(plan(PROFILED, *buffers))
    return Profile(made, classify(made))


def tables(*rows: Sequence[int]) -> list[list[Range]]:
    return [[Range(address * G, 1000) for address in row] for row in rows]


def decided(watched: Profile, rows: list[list[Range]], owned: Callable[[Range], bool] = bool) -> tuple[int, ...] | None:
    for row in rows:
        assert not watched.seen_enough()
        watched.observe(row)
    assert watched.seen_enough()
    watched.decide(owned)
    assert not watched.seen_enough()
    return watched.selected


def test_what_stays_is_selected_with_all_temps() -> None:
    assert decided(profile(TEMP, PARAMETER, OUTPUT), tables((1, 2, 3), (9, 2, 3), (8, 2, 3))) == (0, 1, 2)


@pytest.mark.parametrize("address", [0, 7])
def test_what_was_null_or_elsewhere_once_is_left_out(address: int) -> None:
    assert decided(profile(PARAMETER, OUTPUT), tables((2, 3), (address, 3), (2, 3))) == (1,)
    assert decided(profile(PARAMETER, OUTPUT), tables((address, 3), (2, 3), (2, 3))) == (1,)


def test_sharers_and_foreign_parameters_are_left_out_and_outputs_are_not() -> None:
    watched = profile(PARAMETER, PARAMETER, PARAMETER, OUTPUT)
    rows = tables(*[(2, 2, 5, 6)] * 3)
    assert decided(watched, rows, lambda address: address.address != 5 * G) == (3,)


def test_one_that_has_moved_shares_with_nobody() -> None:
    assert decided(profile(PARAMETER, PARAMETER), tables((2, 4), (2, 2), (2, 2))) == (0,)


def test_nothing_to_select_ends_it() -> None:
    watched = profile(PARAMETER)
    assert decided(watched, tables((1,), (2,), (3,))) == ()
    assert watched.disabled


# -- layout


def test_slices_lie_one_behind_the_other_in_whole_granules() -> None:
    made = executable(plan(PROFILED, BufferSpec(1), PARAMETER, BufferSpec(G + 1), OUTPUT))
    held = Remapping(made, classify(made), 0)
    assert held.to_place() == (0, 1, 2, 3)
    assert held.lay_out((0, 2, 3), G) == {0: Slice(0, G), 2: Slice(G, 2 * G), 3: Slice(3 * G, G)}
    held.profile.selected = (0, 3)
    assert held.to_place() == (0, 3)


def test_nothing_is_reserved_while_there_is_nothing_to_place() -> None:
    assert requests(ran(plan(PROFILED, PARAMETER), *WATCHED), "create_reservation") == []
    history = ran(plan(PROFILED, PARAMETER), *WATCHED, R, R)
    assert requests(history, "create_reservation") == ["create_reservation"]


# -- scopes


def test_persistent_sets() -> None:
    buffers = (TEMP, CONSTANT, PARAMETER, OUTPUT)
    assert sets(ran(plan(ALWAYS, *buffers), R)) == [(1,)]
    assert sets(ran(plan(TEMPS, *buffers), R, R)) == [(0, 1)] * 2
    assert sets(ran(plan(PROFILED, *buffers), *WATCHED, R)) == [None, None, None, (0, 1, 2, 3)]
    assert sets(ran(plan(TEMPS, *buffers), R, vmm=False)) == [(1,)]
    assert sets(ran(plan(TEMPS, PARAMETER), R)) == [()]


def test_only_runs_that_go_well_are_counted() -> None:
    history = ran(plan(PROFILED, TEMP), Run(result=Result.RAISE_AFTER), R, Run(ending=Ending.EARLY), R, R, R)
    assert sets(history) == [None, None, None, None, (0,)]


def test_remap_enabled() -> None:
    def enabled(history: History) -> list[bool]:
        return [each["enabled"] for each in details(history, "return", name="create")]

    assert enabled(ran(plan(TEMPS, TEMP), R)) == [True]
    assert enabled(ran(plan(TEMPS, PARAMETER), R)) == [False]
    assert enabled(ran(plan(PROFILED, PARAMETER), Foreign(0), *WATCHED, R)) == [True, True, True, False]


def test_collectives_are_allocated_first() -> None:
    history = ran(plan(ALWAYS, TEMP, COLLECTIVE, OUTPUT, COLLECTIVE), R)
    assert [each["space"] for each in details(history, "memory", name="allocate")] == [1, 1, 0, 0]


def test_aliases_are_ended_by_execute() -> None:
    history = ran(plan(PROFILED, PARAMETER, OUTPUT), *WATCHED, R, Run(result=Result.RAISE_BEFORE))
    for scope in (4, 5):
        names = [each["name"] for each in details(history, "memory", scope=scope) if each["name"] in ("map", "unmap")]
        assert names == ["map", "map", "unmap", "unmap"]


def test_an_alias_that_cannot_be_ended_is_tried_again() -> None:
    history = ran(plan(PROFILED, OUTPUT), *WATCHED, Fail("unmap", 1, Code.UNAVAILABLE), R, R)
    assert answers(history)[-2:] == ["UNAVAILABLE", "ok"]
    again = ran(plan(PROFILED, OUTPUT), *WATCHED, *[Fail("unmap", k) for k in (1, 2, 3)], R, R)
    assert answers(again)[-2:] == ["RESOURCE_EXHAUSTED", "ok"]


def test_what_cannot_be_freed_is_tried_again() -> None:
    history = ran(plan(TEMPS, TEMP), Fail("deallocate", 1), Fail("deallocate", 2), R, R, R)
    assert answers(history)[-3:] == ["RESOURCE_EXHAUSTED", "ok", "ok"]


def test_refusals() -> None:
    assert answers(ran(plan(TEMPS, TEMP), R, Run(stream=1), Run(other=True), R)) == ["ok", "INTERNAL", "INTERNAL", "ok"]
    assert answers(ran(plan(TEMPS, TEMP), R, Coarsen(), R, Coarsen(), R))[::2] == ["ok", "INTERNAL", "ok"]
    nulled = ran(plan(PROFILED, NULLABLE), *WATCHED, Nullify(0), R, Bind(0, 0), R)
    assert answers(nulled)[-3:] == ["INTERNAL", "ok", "ok"]
    shared = ran(plan(PROFILED, PARAMETER, PARAMETER), *WATCHED, R, Share(0, 1), R, Bind(0, 0), R)
    assert answers(shared)[-3:] == ["ALREADY_EXISTS", "ok", "ok"]


def test_what_closing_can_give_back_is_given_back() -> None:
    """What a run could not free is freed at the end, before the reservation that it lies in."""
    history = ran(plan(TEMPS, TEMP), Fail("deallocate", 1), Fail("deallocate", 2), R, Close())
    order = requests(history, "deallocate", "release")
    assert order == ["deallocate"] * 3 + ["release"]


def test_only_what_may_be_remapped_has_a_place() -> None:
    for mode, placed in ((TEMPS, (1,)), (PROFILED, (0, 1, 2))):
        made = executable(plan(mode, PARAMETER, TEMP, OUTPUT))
        assert Remapping(made, classify(made), 0).to_place() == placed


def test_what_is_given_back_at_last_is_given_back_once() -> None:
    refused = (Fail("deallocate", 1), Fail("deallocate", 2))
    assert len(requests(ran(plan(TEMPS, TEMP), *refused, R, R, R, Close()), "deallocate")) == 2 + 3


def test_a_reservation_is_released_once() -> None:
    class Both:
        """The allocator, and the reservation."""

        released = 0

        def synchronize_pending_operations(self, device: int) -> None:
            """Nothing is pending."""

        def release(self) -> None:
            self.released += 1

    made = executable(plan(TEMPS, TEMP))
    held, both = Remapping(made, classify(made), 0), Both()
    held.allocator = held.reservation = both  # type: ignore[assignment] # stands in for either
    held.close()
    held.close()
    assert both.released == 1


def test_a_stream_is_another_whether_older_or_younger() -> None:
    class Memory:
        def stream(self, device: int) -> int:
            return 5

    made = RemappingAllocator(None, executable(plan(TEMPS, TEMP)))  # type: ignore[arg-type] # it is not used
    made.check_stream(0, 5, Memory())  # type: ignore[arg-type] # nothing else is asked of it
    for stream in (4, 6):
        with pytest.raises(SubjectError, match=f"run on stream {stream}, but its allocator follows stream 5"):
            made.check_stream(0, stream, Memory())  # type: ignore[arg-type] # as above


def test_a_null_argument_is_refused_unless_it_may_be() -> None:
    from vmm_reference.scopes import PlainScope

    made = executable(plan(ALWAYS, PARAMETER, NULLABLE, CONSTANT))

    class NoMemory:
        def allocate(self, ordinal: int, size: int, *, retry: bool = True, space: int = 0) -> Range:
            raise AssertionError

        def deallocate(self, ordinal: int, address: Range) -> None:
            raise AssertionError

    scope = PlainScope(made, classify(made), 0, NoMemory())
    null, there = Range(0, 0), Range(G, 1000)
    assert scope.generate([there, null, there]) == [there, null, there]
    for wrong in ([null, there, there], [there, there, null]):
        with pytest.raises(SubjectError) as caught:
            scope.generate(wrong)
        assert caught.value.code is Code.FAILED_PRECONDITION


def test_copies_are_shown_in_place_of_what_they_protect() -> None:
    history = ran(plan(PROFILED, DONATABLE), *WATCHED, Run(donate=False))
    (shown,) = details(history, "memory", name="map")
    assert shown["address"] == details(history, "call", name="execute")[3]["table"][0]
    assert shown["address"] != details(history, "scope")[3]["arguments"][0]


def test_closing_gives_the_reservation_back_and_opens_anew() -> None:
    history = ran(plan(TEMPS, TEMP), R, Close(), R)
    order = requests(history, "create_reservation", "synchronize", "release")
    assert order == ["create_reservation", "synchronize", "release"] * 2


def test_a_closed_executable_makes_no_scope() -> None:
    from vmm_conformance.drivers.host import HostDriver
    from vmm_reference.remapping import buffer_allocator

    class Nothing:
        allocate = deallocate = None

    for mode in RemapMode:
        made = buffer_allocator(HostDriver, executable(plan(mode, TEMP)))  # type: ignore[arg-type] # it is not used
        made.close()
        made.close()
        with pytest.raises(SubjectError) as caught:
            made.create_scope(0, 1, Nothing())  # type: ignore[arg-type] # it is not looked at
        assert caught.value.code is Code.FAILED_PRECONDITION


# -- command buffers


class Buffer:
    """Notes what is done with it; recording the command ``broken`` fails."""

    def __init__(self, log: list[str], number: int) -> None:
        self.log = log
        self.number = number

    def record(self, command: int, table: Sequence[Range]) -> None:
        self.log.append(f"{self.number}:{command}")
        if table[0].size == 13 and command == 1:
            raise SubjectError(Code.INTERNAL, "unlucky")

    def submit(self, stream: int) -> None:
        self.log.append(f"{self.number}!")


class Recording:
    def __init__(self, *commands: BufferCommand) -> None:
        self.log: list[str] = []
        self.made = 0
        self.runner = CommandBufferRunner(ScopedExecutable((TEMP, TEMP, TEMP), commands), self.new)

    def new(self, device: int) -> CommandBuffer:
        self.made += 1
        return Buffer(self.log, self.made)

    def execute(self, *addresses: int, persistent: tuple[int, ...] | None, device: int = 0, size: int = G) -> list[str]:
        """What one execution has done."""
        del self.log[:]
        table = [Range(address, size) for address in addresses]
        self.runner.execute(table, persistent, device=device, stream=1)
        return list(self.log)


TWO = (BufferCommand((0,), (1,)), BufferCommand((2,)))


def test_without_promises_what_moved_is_recorded() -> None:
    made = Recording(*TWO)
    assert made.execute(1, 2, 3, persistent=None) == ["1:0", "1:1", "1!"]
    assert made.execute(1, 2, 3, persistent=None) == ["1!"]
    assert made.execute(1, 9, 3, persistent=None) == ["1:0", "1!"]


def test_everything_is_recorded_when_promises_begin_and_when_they_end() -> None:
    made = Recording(*TWO)
    made.execute(1, 2, 3, persistent=None)
    assert made.execute(1, 2, 3, persistent=()) == ["1:0", "1:1", "1!"]
    assert made.execute(1, 2, 3, persistent=None) == ["1:0", "1:1", "1!"]


def test_promised_buffers_are_not_looked_at() -> None:
    made = Recording(*TWO)
    made.execute(1, 2, 3, persistent=(0, 1))
    assert made.execute(7, 8, 3, persistent=(0, 1)) == ["1!"]
    assert made.execute(7, 8, 9, persistent=(0, 1)) == ["1:1", "1!"]


def test_a_command_that_asks_is_recorded_every_time() -> None:
    made = Recording(BufferCommand((0,), always_update=True), BufferCommand((1,)))
    made.execute(1, 2, 3, persistent=(0, 1))
    assert made.execute(1, 2, 3, persistent=(0, 1)) == ["1:0", "1!"]


def test_what_is_half_recorded_is_thrown_away() -> None:
    made = Recording(*TWO)
    made.execute(1, 2, 3, persistent=())
    with pytest.raises(SubjectError):
        made.execute(4, 5, 6, persistent=(), size=13)
    assert made.log == ["1:0", "1:1"]
    assert made.execute(4, 5, 6, persistent=()) == ["2:0", "2:1", "2!"]


def test_each_device_has_its_own() -> None:
    made = Recording(*TWO)
    made.execute(1, 2, 3, persistent=())
    assert made.execute(1, 2, 3, persistent=(), device=1) == ["2:0", "2:1", "2!"]
    assert made.execute(1, 2, 3, persistent=()) == ["1!"]
