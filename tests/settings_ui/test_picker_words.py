"""The sentences of the picker (copy.md 4.1)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from conch.copy.clock import Viewer
from settings_ui import picker_words as words

NOW = datetime(2026, 10, 9, 13, 46, tzinfo=UTC)
VIEWER = Viewer(NOW, ZoneInfo("Europe/Berlin"), "h12")
SIX = datetime(2026, 10, 9, 16, 0, tzinfo=UTC)
AT = words.Limit("Claude Code", at=True, until=SIX)
NB = "\u00a0"


def said(note):
    return f"{note.head} {note.tail}".replace(NB, " ")


def test_the_note_says_who_answers_until_the_reset():
    note = words.note(AT, words.Pick(), "Codex", VIEWER)

    assert said(note) == "Claude Code is at its limit until 6:00 PM. Codex answers until then."
    assert note.kind == "ok"


@pytest.mark.parametrize(
    ("pick", "answers", "expected"),
    [
        (words.Pick("codex", "Codex"), "Codex", ". Codex answers until then, as you chose."),
        (words.Pick("wait"), "", ". Chats wait for it, as you chose."),
        (words.Pick(), "", ". Chats wait."),
        (words.Pick("claude-code", "Claude Code", itself=True), "", ", and is your pick. Chats wait."),
    ],
)
def test_the_note_says_the_state_now(pick, answers, expected):
    assert said(words.note(AT, pick, answers, VIEWER)) == f"Claude Code is at its limit until 6:00 PM{expected}"


def test_there_is_no_note_while_the_account_has_room():
    assert words.note(replace(AT, at=False), words.Pick(), "Codex", VIEWER) is None


def test_the_note_names_the_window_that_binds():
    """copy.md 0.7: the weekly one where that is what is full."""
    note = words.note(replace(AT, window="weekly"), words.Pick(), "", VIEWER)

    assert said(note) == "Claude Code is at its weekly limit until 6:00 PM. Chats wait."


def test_the_order_is_said_in_up_to_three_names():
    assert words.in_order(["A"]) == "A."
    assert words.in_order(["A", "B"]) == "A, then B."
    assert words.in_order(["A", "B", "C"]) == "A, then B, then C."
    assert words.in_order(["A", "B", "C", "D", "E", "F"]) == "A, then B, then 4 more."


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (words.Now(answers="Codex", first=True), "Codex would answer now."),
        (words.Now(answers="Codex · ada@work.example", addressed=True, first=True), "The first would answer now."),
        (words.Now(next="Codex", next_at=SIX), "No account has room now. Codex is next, at 6:00 PM."),
        (
            words.Now(next="Codex", next_at=SIX, local=True),
            "No account has room now. Codex is next, at 6:00 PM. The model on this computer would answer.",
        ),
        (words.Now(others=False), "No other account is connected."),
    ],
)
def test_automatic_says_who_would_answer_now(now, expected):
    assert words.automatic_now(now, VIEWER).replace(NB, " ") == expected


def test_waiting_says_until_when():
    said_ = words.waiting(AT, VIEWER).replace(NB, " ")

    assert said_ == "Claude Code resets at 6:00 PM, in 2 hours 14 minutes. Your messages go out then."
    assert words.waiting(replace(AT, at=False), VIEWER) == "Your messages go out when Claude Code resets."
    unknown = "Claude Code doesn’t say when it resets. Conch tries again after 15 minutes."
    assert words.waiting(replace(AT, until=None), VIEWER) == unknown
    assert words.waiting(replace(AT, until=NOW - timedelta(minutes=1)), VIEWER).startswith("Claude Code doesn’t say")


def test_pay_keys_say_what_turning_them_on_means():
    ten = words.Budget(Decimal(10), Decimal("6.90"))

    off = "Off, a limit never starts spending. On, they come after your plans, "
    assert words.paid(on=False, budget=ten) == f"{off}within this month’s budget. $6.90 of $10.00 left."
    assert words.paid(on=True, budget=ten) == "In the order above, within this month’s budget. $6.90 of $10.00 left."
    assert words.paid(on=False, budget=words.Budget()) == f"{off}without a budget."
    picked = words.paid(on=False, budget=ten, pick="OpenRouter", per_reply=Decimal("0.021"))
    assert picked == "Off, Automatic never starts spending. Your pick, OpenRouter, is pay per use: about $0.02 a reply."


def test_what_is_spoken_carries_position_and_total():
    assert words.spoken_move("Codex", 2, 3, "Codex would answer now.") == "Codex is now 2 of 3. Codex would answer now."
    assert words.at_the_end("Codex", first=True) == "Codex is already first."
    assert words.saved(words.Pick("wait")) == "Saved. Chats wait until it resets."
    assert words.saved(words.Pick("codex", "Codex")) == "Saved. Codex answers at a limit."
