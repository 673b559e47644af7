"""Every row of copy.md 4.2 from the data of its line."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from conch.copy import lines
from conch.copy.clock import Viewer

NB = "\u00a0"
VIEWER = Viewer(now=datetime(2026, 10, 9, 13, 46, tzinfo=UTC), zone=ZoneInfo("Europe/Berlin"))
SIX = "2026-10-09T16:00:00Z"  # 6:00 PM in Berlin
HALF_PAST_FOUR = "2026-10-09T14:30:00Z"
THURSDAY = "2026-10-15T07:00:00Z"
T6, T430 = f"6:00{NB}PM", f"4:30{NB}PM"


def routed(**changes):
    return {
        "from": "claude-code",
        "to": "codex",
        "until": SIX,
        "from_model": "opus",
        "to_model": "gpt-5.5",
        "stayed": False,
        "from_label": "Claude Code",
        "to_label": "Codex",
        "from_model_label": "Opus 4.8",
        "to_model_label": "GPT-5.5",
        "to_billing": "plan",
        "window": None,
        "reason": "window",
        "per_reply": None,
        "month_left": None,
        "unpriced": False,
        "passed": [],
        "by": "auto",
        "switch_back": True,
        "folded": None,
    } | changes


def passed(label, code, until=None, retry_at=None):
    return {"slug": label.lower(), "label": label, "code": code, "until": until, "retry_at": retry_at}


def offer(label, billing="plan", per_reply=None):
    return {"slug": label.lower(), "label": label, "billing": billing, "per_reply": per_reply}


def waiting(why, **changes):
    return {
        "why": why,
        "from": "claude-code",
        "from_label": "Claude Code",
        "for": "claude-code",
        "until": SIX,
        "tries_at": None,
        "next": None,
        "could": None,
        "pick": None,
        "budget": None,
        "local": None,
    } | changes


OPENROUTER = {"to": "openrouter", "to_label": "OpenRouter", "to_billing": "key"}
KEY = offer("OpenRouter", "key", "0.021")
ROUTED = [
    (routed(), f"Claude Code reached its limit until {T6}. Codex is answering.", "ok"),
    (
        routed(window="weekly", until=THURSDAY),
        f"Claude Code reached its weekly limit until Thu{NB}9:00{NB}AM. Codex is answering.",
        "ok",
    ),
    (
        routed(until=None, reason="refused"),
        "Claude Code reached its limit. Codex is answering. Claude Code didn’t say when it resets.",
        "ok",
    ),
    (
        routed(**OPENROUTER, per_reply="0.021", month_left="6.9"),
        (
            f"Claude Code reached its limit until {T6}. OpenRouter is answering. "
            "About $0.02 a reply, $6.90 left this month."
        ),
        "warn",
    ),
    (
        routed(**OPENROUTER, unpriced=True),
        (
            f"Claude Code reached its limit until {T6}. OpenRouter is answering. "
            "It charges per reply; Conch can’t price it."
        ),
        "warn",
    ),
    (
        routed(to="local", to_label="Llama 3.2 3B", to_model_label="Llama 3.2 3B", to_billing="local"),
        f"Claude Code reached its limit until {T6}. Llama 3.2 3B on this computer is answering. No account has room.",
        "ok",
    ),
    (
        routed(to_label="Gemini", passed=[passed("Codex", "at_limit", HALF_PAST_FOUR)]),
        f"Claude Code and Codex are at their limits. Gemini is answering. Codex is next, at {T430}.",
        "ok",
    ),
    (
        routed(to_label="Gemini", passed=[passed("Codex", "refused", retry_at=HALF_PAST_FOUR)]),
        f"Codex refused for a limit too. Gemini is answering. Conch tries Codex again at {T430}.",
        "ok",
    ),
    (
        routed(to_label="Gemini", passed=[passed("Codex", "signed_out")]),
        "Codex is signed out. Gemini is answering.",
        "ok",
    ),
    (
        routed(to_label="Gemini", passed=[passed("Codex", "unable")]),
        "Codex couldn’t take it. Gemini is answering.",
        "ok",
    ),
    (
        routed(passed=[passed("OpenRouter", "paid_off")]),
        f"Claude Code reached its limit until {T6}. Codex is answering.",
        "ok",
    ),
    (routed(stayed=True), f"Claude Code reached its limit until {T6}. This chat stays with Codex.", "ok"),
    (routed(folded={"until": SIX}), f"Back to Claude Code: this chat waits for it until {T6}.", "calm"),
    (routed(folded={"until": None}), "Back to Claude Code.", "calm"),
]


@pytest.mark.parametrize(("data", "words", "tone"), ROUTED)
def test_a_routed_line_says_who_reached_what_and_who_answers(data, words, tone):
    """R22, R33, FBK-16."""
    line = lines.line_said("limit.routed", data, VIEWER)

    assert line.text == lines.text("limit.routed", data, VIEWER) == words
    assert line.tone == tone


def test_a_routed_line_offers_switch_back_and_a_folded_one_carrying_on():
    """R23."""
    assert [b.label for b in lines.line_said("limit.routed", routed(), VIEWER).buttons] == ["Switch back"]
    folded = lines.line_said("limit.routed", routed(folded={"until": SIX}), VIEWER)
    assert [(b.label, b.act) for b in folded.buttons] == [("Carry on with Codex", "carry_on")]
    assert lines.line_said("limit.routed", routed(switch_back=False), VIEWER).buttons == ()


WAITING = [
    (
        waiting("chosen", could=offer("Codex")),
        f"Claude Code reached its limit. This chat waits until {T6}. Your message goes out then.",
        ["Send with Codex now", "Cancel"],
    ),
    (
        waiting("room", next=passed("Codex", "at_limit", HALF_PAST_FOUR)),
        f"No account has room. Codex is next, at {T430}. Your message goes out then.",
        ["Cancel"],
    ),
    (
        waiting("only_keys", could=KEY),
        (
            "Claude Code reached its limit. OpenRouter could answer for about $0.02. Pay-per-use keys are off. "
            f"Your message goes out at {T6}."
        ),
        ["Use it for this message", "Cancel"],
    ),
    (
        waiting("no_reset", until=None, tries_at=HALF_PAST_FOUR),
        (
            "Claude Code reached its limit and doesn’t say until when. Your message goes out once it answers; "
            f"Conch tries at {T430}."
        ),
        ["Cancel"],
    ),
    (
        waiting("room", next=passed("Codex", "at_limit", HALF_PAST_FOUR), local={"label": "SmolLM2"}),
        f"No account has room. Codex is next, at {T430}. Your message goes out then.",
        ["Answer with SmolLM2 now", "Cancel"],
    ),
    (
        waiting("tools", could=offer("Cursor")),
        (
            "Claude Code reached its limit. Cursor has room, but can’t run the tools this chat uses. "
            f"This chat waits until {T6}."
        ),
        ["Cancel"],
    ),
    (
        waiting("budget", budget="10"),
        f"This month’s $10.00 is spent. No plan has room until {T6}. Your message goes out then.",
        ["Change the budget", "Cancel"],
    ),
    (
        waiting("holds", budget="10", until=None),
        "Answers that are running may use what is left of this month’s $10.00. Your message goes out when they end.",
        ["Cancel"],
    ),
    (
        waiting("needs_budget", could=KEY),
        "OpenRouter could answer for about $0.02. While you’re away, that needs a month’s budget.",
        ["Use it for this message", "Set a budget", "Cancel"],
    ),
    (
        waiting("pick_is_limit", could=offer("Codex")),
        f"Claude Code reached its limit until {T6}. It is also your pick. This chat waits.",
        ["Carry on with Codex", "Cancel"],
    ),
    (
        waiting("pick_gone", pick=offer("Gemini"), could=offer("Codex")),
        "Gemini, your pick, isn’t connected any more. This chat waits.",
        ["Carry on with Codex", "Cancel"],
    ),
    (
        waiting("pick_no_room", pick=offer("Gemini"), could=KEY),
        f"Claude Code reached its limit until {T6}. Gemini, your pick, has none left. This chat waits.",
        ["Carry on with OpenRouter, about $0.02", "Cancel"],
    ),
]


@pytest.mark.parametrize(("data", "words", "buttons"), WAITING)
def test_a_waiting_line_says_for_whom_until_when_and_what_would_help(data, words, buttons):
    """R16, R25: amber, with Cancel last."""
    line = lines.line_said("limit.waiting", data, VIEWER)

    assert line.text == words
    assert [button.label for button in line.buttons] == buttons
    assert line.tone == "warn"


OTHERS = [
    (
        "limit.back",
        {"engine": "claude-code", "engine_label": "Claude Code", "until": SIX, "to": "codex", "to_label": "Codex"},
        f"Back to Claude Code: this chat waits for it until {T6}.",
    ),
    (
        "limit.returned",
        {"account": "claude-code", "label": "Claude Code"},
        "Claude Code is back, with what it missed.",
    ),
    ("limit.sent", {"at": SIX, "planned_at": SIX, "late": False}, f"Your message went out at {T6}."),
    ("limit.sent", {"at": f"{SIX[:17]}59Z", "planned_at": SIX, "late": False}, f"Your message went out at {T6}."),
    (
        "limit.sent",
        {"at": SIX, "planned_at": HALF_PAST_FOUR, "late": True},
        f"Your message went out at {T6}, later than planned: Conch was not running.",
    ),
    (
        "limit.unstayed",
        {"key": "openrouter", "key_label": "OpenRouter", "account": "claude-code", "label": "Claude Code"},
        "OpenRouter charges per reply and isn’t allowed any more. This chat is back with Claude Code.",
    ),
    (
        "limit.capped",
        {"spent": "1.98", "cap": "2", "raise_to": "4", "account": "openrouter", "label": "OpenRouter"},
        "This chat reached the $2.00 you set for it. Nothing more is spent until you raise it.",
    ),
    (
        "limit.extra",
        {"account": "claude-code", "label": "Claude Code", "cost": "0.12"},
        "Claude Code went over its limit during this reply: $0.12 of extra usage, which you switched on there.",
    ),
    (
        "handoff.shortened",
        {"account": "codex", "label": "Codex", "messages": 38},
        "Codex reads the last 38 messages of this chat; the earlier ones don’t fit.",
    ),
    ("handoff.images", {"account": "codex", "label": "Codex"}, "Codex can’t see the earlier images of this chat."),
    ("offline.routed", {"label": "SmolLM2"}, "You’re offline. SmolLM2 on this computer is answering."),
]


@pytest.mark.parametrize(("kind", "data", "words"), OTHERS)
def test_the_other_lines_read_as_they_are_written(kind, data, words):
    assert lines.text(kind, data, VIEWER) == words


def test_a_capped_line_raises_the_cap_or_stops():
    """R18."""
    line = lines.line_said("limit.capped", {"spent": "1.98", "cap": "2", "raise_to": "4"}, VIEWER)

    assert [(b.label, b.act, b.amount) for b in line.buttons] == [
        ("Raise to $4.00", "raise", "4"),
        ("Stop here", "cancel", ""),
    ]
    assert line.tone == "bad"


FAILURES = [
    ({"code": "offline"}, "You seem to be offline. Nothing was sent.", ["Try again"]),
    (
        {"code": "unreachable", "label": "Codex", "offers": [KEY]},
        "Codex can’t be reached. Nothing was sent.",
        ["Try again", "Answer with OpenRouter, about $0.02"],
    ),
    ({"code": "interrupted"}, "Conch stopped during this answer. What had arrived is kept.", ["Try again"]),
    (
        {"code": "interrupted", "charged": True},
        "Conch stopped during this answer. What had arrived is kept. It may have been charged.",
        ["Try again"],
    ),
    (
        {"code": "cut", "label": "Codex"},
        "Codex stopped before the end. What had arrived is kept.",
        ["Continue", "Try again"],
    ),
    (
        {"code": "cut", "label": "OpenAI", "charged": True, "arrived": False, "offers": [offer("Codex")]},
        "OpenAI broke off before it had written anything. It may have been charged.",
        ["Try again", "Answer with Codex"],
    ),
    (
        {"code": "interrupted", "arrived": False},
        "Conch stopped during this answer. Nothing had arrived.",
        ["Try again"],
    ),
    (
        {"code": "provider_error", "label": "Codex", "said": "The server had an error."},
        "Codex couldn’t answer: The server had an error.",
        ["Try again"],
    ),
    (
        {"code": "cannot_carry_images", "label": "Codex", "model": "gpt-5.5", "offers": [offer("Claude Code")]},
        "gpt-5.5 can’t see images. Nothing was sent.",
        ["Answer with Claude Code"],
    ),
    (
        {"code": "cannot_carry_tools", "label": "Codex", "offers": [offer("Claude Code")]},
        "Codex can’t run the tools this chat uses. Nothing was sent.",
        ["Answer with Claude Code"],
    ),
    (
        {"code": "no_account", "offers": [{**KEY, "per_reply": None}]},
        "This chat’s account isn’t connected any more. Nothing was sent.",
        ["Answer with OpenRouter, pay per use", "Connect one"],
    ),
    (
        {"code": "signed_out", "label": "Codex", "offers": [offer("Claude Code")]},
        "Codex is signed out. Nothing was sent.",
        ["Sign in", "Answer with Claude Code"],
    ),
    (
        {"code": "no_room", "until": THURSDAY, "offers": [offer("SmolLM2", "local")]},
        f"No account has room before Thu{NB}9:00{NB}AM. Your message wasn’t sent.",
        ["Connect another", "Answer with SmolLM2"],
    ),
    (
        {"code": "no_room", "reason": "budget", "budget": "10", "offers": []},
        "This month’s $10.00 is spent. Your message wasn’t answered.",
        ["Change the budget"],
    ),
]


@pytest.mark.parametrize(("failure", "words", "buttons"), FAILURES)
def test_a_failure_says_what_happened_and_what_would_help(failure, words, buttons):
    """R11, R16, R19, R30, R36."""
    said = lines.failure_said(failure, VIEWER)

    assert said.text == lines.failure_text(failure, VIEWER) == words
    assert [button.label for button in said.buttons] == buttons
    assert said.tone == "bad"


def test_every_failure_code_of_a_turn_has_its_own_words():
    from conch.turns import failures

    codes = {failures.CUT, failures.FAULT, failures.OURS, failures.INTERRUPTED, failures.THROTTLED}
    codes |= {failures.OVERLOADED, failures.UNREACHABLE, failures.SIGNED_OUT, *failures.REJECTED.values()}
    codes |= {code for _, code in failures._BY_ERROR}

    from conch.copy.failures import CODES

    assert codes <= set(CODES)


def test_an_address_is_spoken_after_a_comma():
    line = lines.line_said("limit.routed", routed(to_label="Codex · ada@work.example"), VIEWER)

    assert line.text.endswith("Codex · ada@work.example is answering.")
    assert line.spoken.endswith("Codex, ada@work.example is answering.")
