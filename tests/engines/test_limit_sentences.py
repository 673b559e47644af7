"""Limits in words, as the programs write them when nothing typed says it (RST-01, RST-07, RST-09, RST-11, R30)."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conch.engines.limit_sentences import LimitSentence, limit_sentence
from tests.engines.conftest import NOW


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_rst_01_the_number_after_the_pipe_is_seconds():
    """RST-01: kept as UTC; the page shows it in the person's own zone (2:00 PM in New York)."""
    found = limit_sentence("Claude AI usage limit reached|1749924000", at("2025-06-14T17:57:00Z"))
    assert found == LimitSentence(at("2025-06-14T18:00:00Z"))
    assert found.until.astimezone(ZoneInfo("America/New_York")).strftime("%H:%M") == "14:00"


def test_rst_07_a_time_of_day_is_the_next_such_moment():
    """RST-07: at 23:00 in New York, 2:30am is tomorrow's."""
    found = limit_sentence(
        "You've hit your session limit · resets 2:30am (America/New_York)", at("2026-07-25T03:00:00Z")
    )
    assert found.until == at("2026-07-25T06:30:00Z")


@pytest.mark.parametrize(
    ("text", "until", "model"),
    [
        ("Claude AI usage limit reached|1784700000", "2026-07-22T06:00:00Z", ""),
        ("5-hour limit reached ∙ resets 12:30am", "2026-07-22T00:30:00Z", ""),
        ("You've hit your limit · resets 3:20pm (Asia/Shanghai)", "2026-07-22T07:20:00Z", ""),
        ("You've hit your session limit · resets 4:20am (Europe/Warsaw)", "2026-07-22T02:20:00Z", ""),
        ("You've hit your usage limit · resets 9:50pm (UTC)", "2026-07-22T21:50:00Z", ""),
        ("You're out of extra usage · resets 1:30am (Asia/Calcutta)", "2026-07-22T20:00:00Z", ""),
        (
            "You’ve hit your limit for Claude messages. Limits will reset at 9:30 AM. View your usage details.",
            "2026-07-22T09:30:00Z",
            "",
        ),
        ("Claude usage limit reached. Your limit will reset at 12am.", "2026-07-23T00:00:00Z", ""),
        ("Weekly limit reached ∙ resets 7pm", "2026-07-22T19:00:00Z", ""),
        # Ten weeks ahead is more than any window of a plan: cut to eight days (product.md, Times).
        ("Opus weekly limit reached ∙ resets Oct 6, 1pm", "2026-07-30T00:00:00Z", "opus"),
        ("You've hit your weekly limit · starts anew some day", None, ""),
        ("You've reached your Opus limit · resets 25:99am (Nowhere/Here)", None, "opus"),
        ("Your organization is out of usage. Ask your admin.", None, ""),
        ("You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), or try again at 11:55 AM.",
         "2026-07-22T11:55:00Z", ""),
        ("You've hit your usage limit. Try again later.", None, ""),
    ],
)  # fmt: skip
def test_rst_09_every_wording_is_a_limit_with_its_time_where_it_has_one(text, until, model):
    """RST-09: apostrophes, dots and am/pm in any form; an unknown ending is a limit with an unknown reset."""
    found = limit_sentence(text, at("2026-07-22T00:00:00Z"))
    assert found == LimitSentence(at(until) if until else None, model)


def test_a_time_without_a_zone_is_the_programs_own():
    found = limit_sentence("Weekly limit reached ∙ resets 7pm", at("2026-07-22T00:00:00Z"), ZoneInfo("Asia/Tokyo"))
    assert found.until == at("2026-07-22T10:00:00Z")


def test_rst_11_an_hour_that_comes_twice_is_its_first_then_its_second():
    """RST-11, autumn."""
    text = "You've hit your limit · resets 1:30am (America/Los_Angeles)"
    assert limit_sentence(text, at("2026-11-01T06:00:00Z")).until == at("2026-11-01T08:30:00Z")
    assert limit_sentence(text, at("2026-11-01T08:30:05Z")).until == at("2026-11-01T09:30:00Z")


def test_rst_11_an_hour_that_never_comes_is_the_first_moment_after():
    """RST-11, spring."""
    found = limit_sentence("You've hit your limit · resets 2:30am (America/New_York)", at("2026-03-08T04:00:00Z"))
    assert found.until == at("2026-03-08T07:00:00Z")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Here is how usage limits work: You've hit your limit · resets 1pm (Europe/Lisbon)",
        "The program prints “You've hit your limit” when the plan is used up.",
        "You've hit your limit\n" + "and here is the story of how you got there. " * 20,
        "Rate limits reset every minute.",
        "You've hit your stride.",
    ],
)
def test_an_answer_that_speaks_of_limits_is_no_limit(text):
    """R30: only a text that as a whole is such a sentence."""
    assert limit_sentence(text, NOW) is None


@given(
    st.text(max_size=80), st.sampled_from(["", "|", " resets ", " resets Feb 30, 1pm ", " resets 12am (../../etc) "])
)
def test_no_text_raises(tail, middle):
    found = limit_sentence("You've hit your limit" + middle + tail, NOW.astimezone(UTC))
    assert found is None or found.until is None or found.until > NOW
