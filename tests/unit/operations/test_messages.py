"""What people are told: how much, where it goes, what happens next and what to do."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations import alerts
from genai_finops.operations.breaker import Open
from genai_finops.operations.budget import Cost, Threshold, levels, spending
from genai_finops.operations.desired import Notice
from genai_finops.operations.guardrails import announcements, in_force
from genai_finops.operations.incidents import cost, incidents
from genai_finops.operations.messages import Message, listed, to_chat, to_text
from genai_finops.operations.tokens import TokenPrice, live_estimate
from genai_finops.operations.verify import Deviation, Fault
from tests.unit.operations.worlds import (
    DAY,
    HOUR,
    NOW,
    OTHER_POOL,
    POOL,
    PRICES,
    budget,
    config,
    losses,
    model,
    node,
    sign,
)

LIVE = live_estimate([node("i-1", {"chat": 1}), node("i-2")], PRICES)
THRESHOLDS = (
    Threshold("actual", 50),
    Threshold("actual", 80, "cap_replicas", 2),
    Threshold("forecast", 100, "on_demand_off"),
)
CONFIG = config(model(), model("code", critical=True), budget=budget(*THRESHOLDS))


def spent(*usd, tag="serving-inf2", forecast=None):
    days = [NOW.date() - (number + 1) * DAY for number in range(len(usd))]
    costs = [Cost(day, Decimal(amount), tag, estimated=True) for day, amount in zip(days, usd, strict=True)]
    return spending(costs, None if forecast is None else Decimal(forecast), NOW)


def budget_alert(found):
    return to_text(alerts.budget_alert(CONFIG, levels(CONFIG.budget, [found.report], NOW), found, LIVE))


def test_a_budget_alert_says_how_much_where_it_goes_what_happens_and_what_to_do():
    text = budget_alert(spent("500", "320", forecast="10"))
    assert text.splitlines()[0] == "demo: 80% of the budget of $1,000.00 spent"
    for line in (
        "- 50% reached: $820.00 spent",
        "- Month to date: $820.00, after credits $820.00; AWS may still change the last days",
        "- Forecast for the month: $830.00 (AWS)",
        "- serving-inf2: $820.00",
        "- Nodes running now: $0.60 an hour (spot $0.60), estimate at catalog prices",
        "- Of that for nobody: $0.30 an hour on nodes without a replica",
        "- From now on non-critical models run at most 2 replicas, until 2026-04-01 or until the budget is raised",
        "- If the spend is right, raise budget.monthly_usd and deploy: that lifts guardrails",
    ):
        assert line in text.splitlines()


def test_an_estimate_is_called_one_and_does_not_act_yet():
    """Case 25."""
    text = budget_alert(spent("40", "40"))
    assert "100% reached: $1,200.00 expected by the end of the month (estimate from the run rate)" in text
    assert "Forecast for the month: $1,200.00 (run rate over 1 day)" in text
    assert "Not yet: no new on-demand nodes" in text


def test_nobody_is_told_that_all_is_well_when_the_tag_is_inactive():
    """Case 29."""
    assert "activate the cost-allocation tags" in budget_alert(spent("900", tag=""))


def test_credits_are_shown_and_not_counted():
    """Case 28."""
    day = NOW.date() - DAY
    found = spending([Cost(day, Decimal(30)), Cost(day, Decimal(-30), record_type="Credit")], None, NOW)
    text = to_text(alerts.digest(CONFIG, found, LIVE, {}, NOW))
    assert "Month to date: $30.00, after credits $0.00" in text


def test_the_digest_gives_the_price_of_tokens_and_n_a_where_there_were_none():
    """Case 32."""
    prices = {
        "chat": TokenPrice(Decimal("0.05123"), Decimal("0.2")),
        "code": TokenPrice(None, None),
        "odd": TokenPrice(Decimal(900), None, "too much"),
    }
    text = to_text(alerts.digest(CONFIG, spent("1"), LIVE, prices, NOW))
    assert "chat per 1M tokens: $0.0512 input, $0.20 output" in text
    assert "code per 1M tokens: n/a input, n/a output" in text
    assert "odd per 1M tokens: $900.00 input, n/a output (not believed: too much)" in text


def test_many_tags_are_summed_up():
    day = NOW.date() - DAY
    found = spending([Cost(day, Decimal(1), f"tag-{number}") for number in range(400)], None, NOW)
    text = to_text(alerts.digest(CONFIG, found, LIVE, {}, NOW))
    assert "395 others: $395.00" in text


def test_guardrails_are_announced_with_whom_they_do_not_touch():
    present = in_force(levels(CONFIG.budget, [spent("900").report], NOW))
    came = announcements(present, [])
    text = to_text(alerts.guardrails_changed(CONFIG, came))
    assert "In force: non-critical models run at most 2 replicas" in text
    assert "Untouched, being critical: code" in text
    went = announcements(in_force(()), [one.key for one in came])
    assert alerts.guardrails_changed(CONFIG, went).title == "demo: budget guardrails lifted"


def test_an_incident_says_what_was_lost_what_was_done_and_what_it_costs():
    (found,) = incidents(losses(sign(replicas={"chat": 2}), sign("i-2", pool=OTHER_POOL, replicas={"chat": 1})))
    text = to_text(alerts.incident(CONFIG, found, cost(found, PRICES, spot_rests=True), {"chat": 4}, [POOL]))
    for line in (
        "demo: 2 × inf2.xlarge in us-east-1a, inf2.xlarge in us-east-1b reclaimed",
        "- Since 2026-03-04 12:00 UTC, by interruption-warning",
        "- chat: 3 replicas on these nodes",
        "- chat: at least 4 replicas while replacements load",
        "- Replacements cost $1.52 an hour (estimate at catalog prices)",
        "- While Spot rests: $0.92 an hour more than before",
    ):
        assert line in text.splitlines()


def test_a_breaker_says_until_when():
    message = alerts.breaker_opened(CONFIG, POOL, Open(NOW, NOW + HOUR, 2))
    assert message.title == "demo: Spot of inf2.xlarge in us-east-1a rests until 2026-03-04 13:00 UTC"
    assert "5 interruptions within 30 minutes; storm 2 within a day" in to_text(message)


def test_what_did_not_follow_is_named():
    found = (Deviation("chat", Fault.STILL_RUNNING, "chat should sleep and runs 1 replicas"),)
    assert "demo: chat did not follow" in to_text(alerts.unfollowed(CONFIG, found))
    assert "pinned" in to_text(alerts.notices(CONFIG, (Notice("chat/someone", "chat is pinned"),)))


@pytest.mark.parametrize(
    ("amount", "text"),
    [("1234.5", "$1,234.50"), ("0", "$0.00"), ("0.00012", "$0.0001"), ("-3.456", "-$3.46"), ("-0.01", "-$0.0100")],
)
def test_dollars(amount, text):
    assert alerts.usd(Decimal(amount)) == text


def test_a_long_list_stays_readable():
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(number) for number in range(500)], limit=2) == "0, 1 and 498 more"


def test_amazon_q_in_chat_takes_its_own_schema():
    found = to_chat(Message("Title", "warning", ("a",), ("b",), ("c",)))
    assert found["version"] == "1.0"
    assert found["source"] == "custom"
    assert found["content"] == {
        "textType": "client-markdown",
        "title": ":warning: Title",
        "description": "- a\n- b",
        "nextSteps": ["c"],
    }


texts = st.text(max_size=400)
lines = st.lists(texts, max_size=30).map(tuple)


@given(st.builds(Message, texts, st.sampled_from(["info", "warning", "critical"]), lines, lines, lines))
def test_any_message_fits_where_it_goes(message):
    json.dumps(to_chat(message))
    assert all(line in to_text(message) for line in message.lines)
