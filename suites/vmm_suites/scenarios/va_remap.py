"""Scenarios of the contract ``va-remap``: upstream's own tests, and what random programs rarely reach.

Sizes are in bytes; a granule has `G`. An executable has one command, which reads parameters and constants and
writes the rest, where nothing else is said. Upstream's tests select parameters by hand; here SKIP_PROFILED does,
after three runs.
"""

from __future__ import annotations

from typing import Final

from vmm_conformance.contracts import BufferCommand, BufferKind, BufferSpec, Code, RemapMode
from vmm_conformance.programs.program import Program
from vmm_conformance.programs.scenario import Scenario
from vmm_conformance.programs.va_remap import (
    MODE_NAMES,
    REMOVED_MODES,
    Bind,
    Close,
    Coarsen,
    Configuration,
    Drain,
    Ending,
    ExecutablePlan,
    Fail,
    Foreign,
    Free,
    Hold,
    Nullify,
    Operation,
    ParseMode,
    Probe,
    Result,
    Run,
    Share,
)

G: Final = 4096
TEMP: Final = BufferSpec(G)
PARAMETER: Final = BufferSpec(1024, BufferKind.PARAMETER)
NULLABLE: Final = BufferSpec(1024, BufferKind.PARAMETER, nullable=True)
DONATABLE: Final = BufferSpec(1024, BufferKind.PARAMETER, donatable=True)
OUTPUT: Final = BufferSpec(1000, BufferKind.OUTPUT)
CONSTANT: Final = BufferSpec(100, BufferKind.CONSTANT)

PROFILED, TEMPS, ALWAYS = RemapMode.SKIP_PROFILED, RemapMode.SKIP_TEMP, RemapMode.ALWAYS_UPDATE


def plan(mode: RemapMode, *buffers: BufferSpec, commands: tuple[BufferCommand, ...] = ()) -> ExecutablePlan:
    """An executable with these buffers."""
    kept = (BufferKind.PARAMETER, BufferKind.CONSTANT)
    reads = tuple(n for n, b in enumerate(buffers) if b.kind in kept and not b.donatable)
    writes = tuple(n for n, b in enumerate(buffers) if n not in reads)
    return ExecutablePlan(buffers, commands or (BufferCommand(reads, writes),), mode)


def _scenario(
    name: str,
    configuration: Configuration | ExecutablePlan,
    operations: tuple[Operation, ...],
    exercises: str,
    note: str,
) -> Scenario:
    """``exercises`` are numbers, told apart into the areas by what they are."""
    if isinstance(configuration, ExecutablePlan):
        configuration = Configuration((configuration,))
    ids = tuple(_id(int(number)) for number in exercises.split())
    return Scenario(name, Program("va-remap", configuration, operations), ids, note)


def _id(number: int) -> str:
    return f"SCOPE-{number}" if number < 135 else f"POLICY-{number}" if number < 147 else f"FLAG-{number}"


def _upstream(
    name: str,
    configuration: Configuration | ExecutablePlan,
    operations: tuple[Operation, ...],
    exercises: str,
    test: str,
    what: str,
) -> Scenario:
    return _scenario(f"upstream-va-remap-{name}", configuration, operations, exercises, f"{test}: {what}")


def short(granules: int, *plans: ExecutablePlan, exempt: tuple[int, ...] = ()) -> Configuration:
    """The allocator may commit that many granules."""
    return Configuration(plans, budget=granules, exempt=exempt)


R: Final = Run()
FAILS: Final = Run(result=Result.RAISE_AFTER)
PROTECTED: Final = Run(donate=False)
UNTORN: Final = Run(ending=Ending.NO_TEARDOWN)
EARLY: Final = Run(ending=Ending.EARLY)
EARLY_TORN: Final = Run(ending=Ending.EARLY_TEARDOWN)
WATCHED: Final = (R,) * 3

UPSTREAM: Final = (
    _upstream(
        "parameter-to-stable-address", plan(PROFILED, DONATABLE),
        (*WATCHED, R, Run(donate=False, result=Result.RAISE_AFTER), R), "124 125 127 137 138",
        "RemapsParameterBufferToStableReservationAddress",
        "a parameter is shown at one address, its copy too, and in a run that fails",
    ),
    _upstream(
        "mapping-failure", plan(PROFILED, PARAMETER, NULLABLE), (*WATCHED, R, Nullify(1), R, Bind(1, 0), R),
        "126 127 131",
        "MappingFailureReleasesPreviouslyInstalledAliases",
        "the second of two selected parameters is null; the first one's alias is ended, and later runs go well",
    ),
    _upstream(
        "null-parameter", plan(PROFILED, NULLABLE), (*WATCHED, Nullify(0), R, R, Bind(0, 0), R), "126 131",
        "NullParameterBufferFailsWhenSelectedForRemapping",
        "a selected parameter is null in the first run and in one after",
    ),
    _upstream(
        "alias-release-retries", plan(PROFILED, PARAMETER), (*WATCHED, R, Fail("unmap", 1, Code.UNAVAILABLE), R, R),
        "127 131",
        "ExecutionScopeAliasReleaseRetriesFailedBatchFlush",
        "an alias cannot be ended in execute, and is when the scope is dropped",
    ),
    _upstream(
        "output-in-execution-table", plan(PROFILED, OUTPUT), (*WATCHED, R, R, Drain(), R), "124 128 129 137",
        "RemapsOutputBufferUsingExecutionOnlyAllocationTable",
        "an output of an odd size is owned where the caller can free it",
    ),
    _upstream(
        "profiled-stable-parameter", plan(PROFILED, PARAMETER), (*WATCHED, R, R), "125 128 137 138",
        "SkipProfiledRemapsStableParameterAfterProfiling", "five runs with one parameter that stays",
    ),
    _upstream(
        "profiled-failure-does-not-count", plan(PROFILED, PARAMETER), (Run(result=Result.RAISE_AFTER), *WATCHED, R),
        "137",
        "SkipProfiledDoesNotCountFailedExecution", "the first of five runs fails",
    ),
    _upstream(
        "profiled-temp-alone", plan(PROFILED, TEMP), (*WATCHED, R, R), "123 137 141 142 143",
        "SkipProfiledAutomaticallyRemapsTempWithoutProfileCandidates", "nothing but a temporary buffer",
    ),
    _upstream(
        "profiled-temp-beside-unstable", plan(PROFILED, TEMP, PARAMETER),
        (R, Bind(0, 1), R, Bind(0, 0), R, Bind(0, 1), R, R),
        "123 139 141", "SkipProfiledAutomaticallyRemapsTempWhenParameterIsUnstable",
        "the parameter moves between the runs",
    ),
    _upstream(
        "profiled-temp-from-first-run", plan(PROFILED, TEMP, PARAMETER), (*WATCHED, R), "123 142 143",
        "SkipProfiledAllocatesTempInReservationFromFirstExecution", "the temporary buffer lies in its slice at once",
    ),
    _upstream(
        "profiled-one-physical-temp", short(2, plan(PROFILED, TEMP, PARAMETER)), (*WATCHED, R, R), "123 143",
        "SkipProfiledTransitionHoldsOnePhysicalTempAllocation", "the budget is one parameter and one temporary buffer",
    ),
    _upstream(
        "profiled-exempt-temp", short(1, plan(PROFILED, BufferSpec(G, space=1)), exempt=(1,)), (*WATCHED, R, R),
        "123 133 143",
        "SkipProfiledTransitionFitsReclaimExemptTempInOneTempBudget",
        "its space is exempt from reclaim, and the budget is one buffer",
    ),
    _upstream(
        "profiled-temp-same-size-held", plan(PROFILED, TEMP, OUTPUT), (Hold(G), *WATCHED, Hold(G), R, R, Free(), R),
        "123 143",
        "SkipProfiledTempIsNotRemappedWhileSameSizeBufferIsHeld",
        "the caller holds buffers as large as the temporary one",
    ),
    _upstream(
        "profiled-stable-output", plan(PROFILED, OUTPUT), (*WATCHED, R, R), "124 128 129 137",
        "SkipProfiledRemapsStableOutputAfterProfiling",
        "an output comes back at one address, since its caller frees it",
    ),
    _upstream(
        "profiled-disabled", plan(PROFILED, PARAMETER), (R, Bind(0, 1), R, Bind(0, 0), R, R, R), "141",
        "SkipProfiledDisablesRemappingWhenParameterAddressUnstable", "the only candidate moves",
    ),
    _upstream(
        "profiled-foreign-parameter", plan(PROFILED, PARAMETER, OUTPUT), (Foreign(0), *WATCHED, R, R), "140",
        "SkipProfiledSkipsParameterNotBackedByVmmAllocator", "a parameter stays where the allocator does not know it",
    ),
    _upstream(
        "profiled-shared-parameters", plan(PROFILED, PARAMETER, PARAMETER, OUTPUT), (Share(1, 0), *WATCHED, R, R),
        "140",
        "SkipProfiledDropsParametersSharingABuffer", "two parameters are one buffer",
    ),
    _upstream(
        "profiled-final-address", plan(PROFILED, DONATABLE), (*(PROTECTED,) * 5,), "125 128 137",
        "SkipProfiledProfilesFinalCopyProtectedAddress", "the copy in place of a protected parameter is what stays",
    ),
    _upstream(
        "profiled-replaced-after", plan(PROFILED, DONATABLE), (*WATCHED, PROTECTED, R), "125 124",
        "SkipProfiledRemapsCopyProtectedReplacementAfterTransition",
        "a copy takes the parameter's place after the decision",
    ),
    _upstream(
        "profiled-shared-reservation", plan(PROFILED, TEMP, OUTPUT), (*WATCHED, R, R), "123 142 143",
        "SkipProfiledTempAndStableOutputShareProfilingReservation", "a temporary buffer and an output",
    ),
    _upstream(
        "profiled-late-reservation", plan(PROFILED, PARAMETER, NULLABLE), (R, Bind(1, 1), R, R, R, R), "139 142",
        "SkipProfiledReservationCreatedAfterTransitionHoldsOnlySelectedSet",
        "nothing is reserved until one of two is selected",
    ),
    _upstream(
        "profiled-failed-allocation", short(4, plan(PROFILED, TEMP, BufferSpec(3 * G, BufferKind.OUTPUT))),
        (Hold(2 * G), R, Free(), Drain(), *WATCHED, R), "131 137",
        "SkipProfiledFailedProfilingAllocationsDoNotBlockLaterExecutions", "memory is short in the first run",
    ),
    _upstream(
        "profiled-failed-protection", plan(PROFILED, TEMP, DONATABLE), (EARLY, R, EARLY, R, R, EARLY, R), "130 131 137",
        "SkipProfiledFailedCopyProtectionDoesNotBlockLaterExecutions",
        "copy protection fails before, while and after watching",
    ),
    _upstream(
        "profiled-failed-after-transition", short(4, plan(PROFILED, TEMP, BufferSpec(3 * G, BufferKind.OUTPUT))),
        (*WATCHED, Drain(), Hold(2 * G), R, Free(), Drain(), R, R), "131 138",
        "SkipProfiledFailedAllocationAfterTransitionDoesNotBlockLaterExecutions",
        "memory is short in the run that decides",
    ),
    _upstream(
        "temp-failed-allocation", short(4, plan(TEMPS, TEMP, BufferSpec(3 * G, BufferKind.OUTPUT))),
        (Hold(2 * G), R, Free(), Drain(), R, R, R, R), "123 131",
        "SkipTempFailedAllocationDoesNotBlockLaterExecutions",
        "memory is short for the output, behind the temporary buffer",
    ),
    _upstream(
        "temp-failed-protection", short(4, plan(TEMPS, TEMP, DONATABLE)),
        (Hold(2 * G), PROTECTED, Free(), Drain(), *(PROTECTED,) * 4), "123 130 131",
        "SkipTempFailedCopyProtectionDoesNotBlockLaterExecutions",
        "memory is short for the copy of a protected parameter",
    ),
    _upstream(
        "temp-no-teardown", plan(TEMPS, TEMP), (UNTORN, Drain(), R, R, R, R), "123 130",
        "SkipTempExecutionWithoutTearDownDoesNotBlockLaterExecutions", "the first run is not torn down",
    ),
    _upstream(
        "temp-teardown-then-return", plan(TEMPS, TEMP), (EARLY_TORN, Drain(), R, R, R, R), "123 130",
        "SkipTempTearDownBeforeEarlyReturnReleasesTempOnce", "the first run is torn down and does not execute",
    ),
    _upstream(
        "policies", Configuration((plan(ALWAYS, TEMP, CONSTANT), plan(TEMPS, TEMP, CONSTANT, PARAMETER))),
        (R, Run(1), R, Run(1)), "135 136", "GpuExecutableTest.CommandBufferAllocationPolicy",
        "persistent sets of ALWAYS_UPDATE and SKIP_TEMP",
    ),
    _upstream(
        "policy-fallback", Configuration((plan(TEMPS, TEMP, CONSTANT),), vmm=False), (R, R), "135",
        "GpuExecutableTest.CommandBufferAllocationPolicy", "the persistent set with an allocator that cannot map",
    ),
    _upstream(
        "single-range", Configuration((plan(TEMPS, TEMP, PARAMETER, OUTPUT),), consumer=True),
        (R, Bind(0, 1), R, R, Bind(0, 0), R, R, R), "123 138 144", "CommandBufferVaRemappingSingleRangeReuse",
        "six runs out of one command buffer",
    ),
    _upstream(
        "two-executables", Configuration((plan(TEMPS, TEMP, CONSTANT), plan(TEMPS, TEMP, CONSTANT)), consumer=True),
        (R, Run(1), R, Run(1), R, Run(1)), "123 138 144", "CommandBufferVaRemappingTwoExecutables",
        "two executables in turn; each records its command buffer once",
    ),
    _upstream(
        "profiled-chain",
        Configuration(
            (plan(PROFILED, PARAMETER, TEMP, OUTPUT, commands=(BufferCommand((0,), (1,)), BufferCommand((1,), (2,)))),),
            consumer=True,
        ),
        (*WATCHED, R, R, R), "137 138 144", "CommandBufferSkipProfiledTwoGemmChain",
        "two commands, watched and then fixed",
    ),
    _upstream(
        "mode-default", Configuration(), (ParseMode(),), "153", "CommandBufferUpdateModeDefaultsToAlwaysUpdate",
        "unset",
    ),
    _upstream(
        "modes-parse", Configuration(), tuple(map(ParseMode, MODE_NAMES)), "153",
        "CommandBufferUpdateModesParseFromFlags", "the three names",
    ),
    _upstream(
        "modes-removed", Configuration(), tuple(map(ParseMode, REMOVED_MODES)), "153",
        "RemovedCommandBufferUpdateModesRejectedByTextProto", "the four removed names",
    ),
)  # fmt: skip
"""What upstream tests, as far as a host can."""

COLLECTIVE: Final = BufferSpec(G, space=1)
TWO: Final = Configuration((plan(TEMPS, TEMP, OUTPUT),), devices=2)

OWN: Final = (
    _scenario(
        "va-remap-other-stream", plan(TEMPS, TEMP), (R, Run(stream=1), R), "120 136",
        "the second of three runs is on another stream"
    ),
    _scenario(
        "va-remap-plain-on-other-stream", plan(TEMPS, PARAMETER), (R, Run(stream=1), R), "135",
        "nothing is remapped, so any stream will do",
    ),
    _scenario("va-remap-other-allocator", plan(TEMPS, TEMP), (R, Run(other=True), Run(other=True), R), "121",
    "another allocator, twice"),
    _scenario("va-remap-granularity", plan(TEMPS, TEMP), (R, Coarsen(), R, R, Coarsen(), R), "121",
    "granules are larger for two runs"),
    *(
        _scenario(
            f"va-remap-second-thread-{probe.value}", plan(TEMPS, TEMP, OUTPUT), (R, Run(probe=probe), R), "122",
            f"a second run begins where the first is {probe.value}",
        )
        for probe in (Probe.CREATED, Probe.EXECUTING, Probe.TORN_DOWN)
    ),
    _scenario(
        "va-remap-second-thread-apart", TWO, (R, Run(device=1), Run(probe=Probe.EXECUTING, apart=True), R), "122",
        "a second run begins on another device",
    ),
    _scenario(
        "va-remap-after-failure", plan(TEMPS, TEMP), (FAILS, R, Run(result=Result.RAISE_BEFORE), R), "123 131",
        "runs after one that failed before it submitted, and after",
    ),
    _scenario(
        "va-remap-reservation-refused", plan(TEMPS, TEMP), (Fail("create_reservation"), R, R, R), "131",
        "the first run cannot reserve its addresses",
    ),
    _scenario(
        "va-remap-release-fails-with-execution", plan(PROFILED, PARAMETER), (*WATCHED, R, Fail("unmap"), FAILS, R),
        "127",
        "execution fails, and the alias cannot be ended: the first error counts",
    ),
    _scenario(
        "va-remap-map-refused", plan(PROFILED, PARAMETER, OUTPUT), (*WATCHED, R, Fail("map", 2), R, R), "126 131",
        "the second of two aliases is refused",
    ),
    _scenario(
        "va-remap-rotating", plan(PROFILED, PARAMETER), (*WATCHED, R, Bind(0, 1), R, Bind(0, 0), R, R), "125 128",
        "a selected parameter goes to another buffer and comes back",
    ),
    _scenario(
        "va-remap-nulled-once", plan(PROFILED, NULLABLE, OUTPUT), (R, Nullify(0), R, Bind(0, 0), R, R, R), "139",
        "a parameter is null in the second run and where it was in all others",
    ),
    _scenario(
        "va-remap-there-and-back", plan(PROFILED, PARAMETER, OUTPUT), (R, Bind(0, 1), R, Bind(0, 0), R, R, R), "139",
        "a parameter is elsewhere in the second run",
    ),
    _scenario(
        "va-remap-collectives-first", plan(TEMPS, TEMP, COLLECTIVE, OUTPUT, COLLECTIVE), (R, R), "132 133",
        "buffers of two spaces, in turn",
    ),
    _scenario(
        "va-remap-close-with-work", plan(PROFILED, TEMP, PARAMETER, OUTPUT),
        (*WATCHED, R, Run(keep=True), Close(), R, Close()), "134",
        "closed with aliases and temporary buffers pending, and opened anew",
    ),
    _scenario(
        "va-remap-unnamed-buffers",
        plan(PROFILED, TEMP, TEMP, CONSTANT, CONSTANT, PARAMETER, commands=(BufferCommand((2,), (0,)),)),
        (*WATCHED, R), "137 143",
        "half of the buffers are named by no command",
    ),
    _scenario(
        "va-remap-named-temps", plan(TEMPS, TEMP, TEMP, CONSTANT, commands=(BufferCommand((2,), (0,)),)), (R, R), "136",
        "one of two temporary buffers is named by no command",
    ),
    _scenario(
        "va-remap-named-constants", plan(ALWAYS, CONSTANT, CONSTANT, commands=(BufferCommand((1,)),)), (R, R), "135",
        "one of two constants is named by no command",
    ),
    _scenario(
        "va-remap-plain-buffers", plan(ALWAYS, TEMP, COLLECTIVE, BufferSpec(G, BufferKind.OUTPUT, space=2)),
        (UNTORN, EARLY, Fail("allocate", 2), R, R), "130 131 132 133 135",
        "three spaces, endings of every kind, nothing remapped",
    ),
    _scenario(
        "va-remap-odd-temps", plan(TEMPS, BufferSpec(2 * G + 1), BufferSpec(100), BufferSpec(G, BufferKind.OUTPUT,
        space=2)),
        (R, R), "123 129 133", "temporary buffers of several granules and of less than one",
    ),
    _scenario(
        "va-remap-two-devices",
        Configuration((plan(TEMPS, TEMP, PARAMETER, PARAMETER),), devices=2, consumer=True),
        (R, Run(device=1), R, Bind(1, 1), R, Run(device=1), R), "138 144",
        "the second of two parameters moves on one of two devices",
    ),
    _scenario(
        "va-remap-always-update",
        Configuration(
            (plan(TEMPS, TEMP, CONSTANT, commands=(BufferCommand((1,), (0,)), BufferCommand((), (0,),
            always_update=True))),),
            consumer=True,
        ),
        (R, R, R), "144 145", "all buffers are persistent, and one of two commands asks to be recorded anew",
    ),
    _scenario(
        "va-remap-record-fails",
        Configuration(
            (plan(PROFILED, PARAMETER, TEMP, commands=(BufferCommand((0,)), BufferCommand((), (1,)))),), consumer=True
        ),
        (R, Bind(0, 1), Fail("record", 1), R, R, *WATCHED, R, R), "144 146", "recording fails in the second run",
    ),
    _scenario(
        "va-remap-mode-unknown", Configuration(), (ParseMode("NONSENSE"), ParseMode("SKIP")), "153",
        "names that never were modes"
    ),
)  # fmt: skip

SCENARIOS: Final[tuple[Scenario, ...]] = (*UPSTREAM, *OWN)
