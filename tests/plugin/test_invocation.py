"""What a user asks for: precedence, and one line for what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmm_conformance.invocation import OPTIONS, BadInvocation, Invocation, gather


def test_nothing_given_is_the_reference_over_the_host_driver():
    assert gather({}, {}, {}) == (Invocation(), False)
    assert Invocation().subjects == ("reference",)


def test_the_command_line_wins_over_the_environment_and_that_over_the_ini_file():
    line, environment, ini = (
        {"seed": "1"},
        {"VMM_SEED": "2", "VMM_BUDGET": "dev"},
        {"seed": "3", "budget": "ci"},
    )
    assert gather(line, environment, ini)[0] == Invocation(seed=1, budget="dev")
    assert gather({"seed": None}, environment, ini)[0].seed == 2
    assert gather({}, {}, ini)[0].seed == 3


def test_every_option_has_all_three_forms():
    values = {"seed": "7", "hardened": "yes", "database": "1", "subject": "a\nb", "timeout": "7", "today": "2027-06-30"}
    for option in OPTIONS:
        value = values.get(option.name, "x")
        made = {gather({option.name: value}, {})[0], gather({}, {option.environment: value})[0]}
        made.add(gather({}, {}, {option.name: value})[0])
        assert len(made) == 1, option
        assert made != {Invocation()}, option


def test_subjects_are_separated_by_white_space_in_text_and_may_be_repeated_on_the_command_line():
    assert gather({"subject": ["a", "b:c,d=1"]}, {})[0].subjects == ("a", "b:c,d=1")
    assert gather({}, {"VMM_SUBJECT": "a b:c,d=1"})[0].subjects == ("a", "b:c,d=1")
    assert gather({}, {}, {"subject": ["a", "b"]})[0].subjects == ("a", "b")


def test_whether_any_of_it_was_asked_for_here():
    assert gather({"seed": "1"}, {})[1]
    assert gather({}, {"VMM_SEED": "1"})[1]
    assert not gather({}, {"OTHER": "1"}, {"seed": "1"})[1]


def test_an_empty_value_is_no_value():
    assert gather({"subject": []}, {"VMM_SUBJECT": ""}, {"subject": None})[0].subjects == ("reference",)


def test_a_switch_can_be_turned_off_again():
    assert not gather({}, {"VMM_HARDENED": "0"}, {"hardened": "true"})[0].hardened


def test_paths_are_paths():
    made = gather({"report": "a/b", "replay": "c.json", "waivers": "d.toml"}, {})[0]
    assert (made.report, made.replay, made.waivers) == (Path("a/b"), Path("c.json"), Path("d.toml"))


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"VMM_SEED": "-1"}, "seed must be a whole number from 0 up, got '-1'"),
        ({"VMM_SEED": "one"}, "seed must be a whole number from 0 up, got 'one'"),
        ({"VMM_TIMEOUT": "1.5"}, "timeout must be a whole number from 0 up, got '1.5'"),
        ({"VMM_TODAY": "soon"}, "today must be a day as in 2027-06-30, got 'soon'"),
        ({"VMM_HARDENED": "perhaps"}, "hardened is a switch: 1 or 0, true or false, got 'perhaps'"),
    ],
)
def test_text_that_cannot_be_read_is_one_line(environment, message):
    with pytest.raises(BadInvocation) as caught:
        gather({}, environment)
    assert str(caught.value) == message
