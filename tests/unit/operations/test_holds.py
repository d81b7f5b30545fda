"""A person's word holds until it expires, and not a second longer."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations.holds import HOLD, Hold, HoldError, parse, read
from tests.unit.operations.worlds import NOW, SECOND


@pytest.mark.parametrize(
    ("text", "hold"),
    [
        ("awake until 2026-12-24T18:00:00+01:00", Hold("awake", datetime(2026, 12, 24, 17, tzinfo=UTC))),
        ("asleep until 2026-12-24T18:00Z", Hold("asleep", datetime(2026, 12, 24, 18, tzinfo=UTC))),
        ("  asleep   until 2026-12-24T18:00:00-08:00 ", Hold("asleep", datetime(2026, 12, 25, 2, tzinfo=UTC))),
    ],
)
def test_a_hold_says_what_and_until_when(text, hold):
    assert parse(text) == hold


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is ''; use 'awake until 2026-12-24T18:00:00\\+01:00' or 'asleep until"),
        ("true", "is 'true'; use"),
        ("awake", "is 'awake'; use"),
        ("awake until", "is 'awake until'; use"),
        ("sleep until 2026-12-24T18:00Z", "use 'awake until"),
        ("awake until tomorrow", "'tomorrow' is not a time; write it like"),
        ("awake until 2026-13-24T18:00Z", "is not a time"),
        ("awake until 2026-12-24T18:00:00", "has no zone; add one, such as 2026-12-24T18:00:00\\+01:00 or"),
        ("awake until 2026-12-24", "has no zone"),
        ("awake until 0001-01-01T00:00:00+14:00", "beyond the calendar"),
        ("awake until 2026-12-24T18:00Z and longer", "use 'awake until"),
    ],
)
def test_what_is_no_hold_is_told_with_what_is(text, message):
    with pytest.raises(HoldError, match=message):
        parse(text)
    assert isinstance(read({HOLD: text}), HoldError)


def test_no_annotation_is_no_hold():
    assert read({}) is None


def test_it_ends_at_its_second():
    hold = Hold("awake", NOW)
    assert hold.holds(NOW - SECOND)
    assert not hold.holds(NOW)


@given(st.sampled_from(["awake", "asleep"]), st.datetimes(timezones=st.timezones()))
def test_what_is_written_is_read_back(state, until):
    try:
        hold = Hold(state, until.astimezone(UTC))
    except OverflowError:
        return
    assert parse(hold.annotation()) == hold


@given(st.text())
def test_any_text_is_a_hold_or_told(text):
    assert isinstance(read({HOLD: text}), Hold | HoldError)
