"""The FallbackPlan (doors.md): from facts, and from the database to JSON."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from conch.copy import choices as words
from conch.copy.clock import Viewer
from conch.models import Conversation, Preferences, Turn, Window
from routing.api import as_json, fallback_plan
from routing.facts import Chat, Model, Needs
from routing.plan import plan as plan_of
from tests.conftest import NOW as THEN
from tests.conftest import make_account
from tests.routing.world import (
    LOCAL,
    NOW,
    key,
    later,
    plan,
    question,
    window,
)

VIEWER = Viewer(NOW)
CLAUDE = plan("claude-code", label="Claude Code", windows=(window(100.0, resets=later(hours=4)),))


def planned(*ways, settings=False, **asked):
    """The plan of the first account, in a chat or (Settings) without one."""
    given = question(*ways, **asked)
    return plan_of(replace(given, chat=None) if settings else given, NOW)


def first(*ways, **asked):
    found = planned(CLAUDE, *ways, **asked)
    return found.choices[0], found


def plain(text):
    return text.replace("\u00a0", " ")


def test_the_plan_of_the_contract():
    """doors.md: its own example, key by key."""
    codex = plan("codex", whose="ada@work.example", shares_account="openai-codex", identity="a")
    cli = plan("codex-cli", label="Codex CLI", shares_account="openai-codex", identity="a")
    router = key(
        "openrouter", "0.021", label="OpenRouter", cap=Decimal(10), cap_left=Decimal(9), model=Model("sonnet", "Sonnet")
    )
    local = replace(LOCAL, model=Model("tiny", "Tiny"))
    found = as_json(planned(CLAUDE, codex, cli, router, local=local, offline_fallback=True), VIEWER)

    assert found == {
        "engine": "claude-code",
        "label": "Claude Code",
        "limit": {"at": True, "until": "2026-10-09T16:00:00Z", "reason": "window"},
        "preference": "auto",
        "answers": "codex",
        "choices": [
            {
                "id": "codex",
                "label": "Codex",
                "kind": "plan",
                "ways": ["codex", "codex-cli"],
                "account": "ada@work.example",
                "answers_by": "codex",
                "model": {"id": "gpt-5.5", "label": "GPT-5.5"},
                "room": {
                    "state": "ok",
                    "percent_left": 72,
                    "resets_at": "2026-10-09T16:00:00Z",
                    "window": "5-hour",
                },
                "per_reply": None,
                "skip": None,
                "facts": "72% left · resets 4:00\u00a0PM · Included in your plan · Answers with GPT-5.5",
            },
            {
                "id": "openrouter",
                "label": "OpenRouter",
                "kind": "key",
                "ways": ["openrouter"],
                "account": "key ending 4f2a",
                "answers_by": "openrouter",
                "model": {"id": "sonnet", "label": "Sonnet"},
                "room": {"state": "low", "percent_left": 90, "resets_at": None, "window": "key limit"}
                | {"state": "ok"},
                "per_reply": "0.021",
                "skip": {"code": "paid_off", "text": "Passed over: pay-per-use keys are off"},
                "facts": "About $0.02 a reply · No budget set · Answers with Sonnet",
            },
        ],
        "local": {"account": "local", "model": {"id": "tiny", "label": "Tiny"}, "allowed": True, "skip": None},
        "wait": {"until": "2026-10-09T16:00:00Z"},
    }


@pytest.mark.parametrize(
    ("preferences", "answers"),
    [
        ({}, "codex"),
        ({"limit_fallback": "wait"}, None),
        ({"limit_fallback": "codex-cli"}, "codex"),
        ({"limit_fallback": "openai"}, "openai"),
        ({"limit_fallback": "gone"}, None),
        ({"limit_fallback": "gone", "offline_fallback": True}, "local"),
        ({"limit_order": ("openai",), "limit_paid": True}, "openai"),
    ],
)
def test_who_would_answer_were_it_at_its_limit(preferences, answers):
    """doors.md `answers`: also where it isn't."""
    ways = (
        plan("claude"),
        plan("codex", shares_account="x", identity="a"),
        plan("codex-cli", shares_account="x", identity="a"),
        key("openai"),
    )

    assert planned(*ways, local=LOCAL, **preferences).answers == answers


def test_in_a_chat_that_was_switched_back_nobody_would():
    """R23."""
    assert planned(CLAUDE, plan("codex"), chat=Chat("", waits_until=later(hours=1))).answers is None


def test_an_account_with_room_says_when_its_tightest_window_resets():
    """doors.md: limit.until and wait.until."""
    found = as_json(planned(plan("codex"), CLAUDE), VIEWER)

    assert found["limit"] == {"at": False, "until": "2026-10-09T16:00:00Z", "reason": None}
    assert found["wait"] == {"until": "2026-10-09T16:00:00Z"}
    assert [choice["skip"]["code"] for choice in found["choices"]] == ["at_limit"]


def test_the_model_on_this_computer_has_every_account_as_a_choice():
    """doors.md: for any engine slug."""
    found = as_json(planned(plan("codex"), own="local", local=LOCAL), VIEWER)

    assert (found["engine"], found["label"], [choice["id"] for choice in found["choices"]]) == (
        "local",
        "Tiny",
        ["codex"],
    )
    assert found["limit"] == {"at": False, "until": None, "reason": None}


def test_why_the_model_on_this_computer_could_not_answer():
    """R15."""
    missing, deaf = planned(CLAUDE), planned(CLAUDE, local=LOCAL, needs=Needs(tools=True))

    assert as_json(missing, VIEWER)["local"]["skip"] == {
        "code": "no_model",
        "text": "There’s no model on this computer yet",
    }
    assert as_json(deaf, VIEWER)["local"]["skip"]["code"] == "cannot_carry_tools"
    assert words.local_skip_text(planned(CLAUDE, local=LOCAL).local) == ""


# From the database to JSON.


@pytest.fixture
def connected(ada):
    codex = make_account(ada, "codex", label="Codex")
    Window.objects.create(
        account=codex, name="5-hour", used_percent=28, resets_at=THEN + timedelta(hours=4), read_at=THEN
    )
    make_account(ada, "openai", label="OpenAI", model="gpt-5.5")
    Preferences.objects.filter(pk=ada.pk).update(time_zone="Europe/Berlin", hour_cycle="h23", month_budget_nano=10**10)
    return ada


def test_a_persons_plan_is_json_in_their_own_words(connected):
    """doors.md."""
    found = fallback_plan(connected, "openai", None, THEN)

    assert json.loads(json.dumps(found)) == found
    assert [choice["id"] for choice in found["choices"]] == ["codex"]
    assert found["choices"][0]["facts"].startswith("72% left · resets 18:00 · ")
    assert found["answers"] == "codex"


def test_in_a_chat_the_price_is_for_its_length(connected):
    """R5."""
    chat = Conversation.objects.create(person=connected, account="codex", created_at=THEN, updated_at=THEN)
    Turn.objects.create(conversation=chat, text="x" * 60_000, answer="y" * 60_000, created_at=THEN)
    typical, here = (
        next(choice for choice in fallback_plan(connected, "codex", asked, THEN)["choices"] if choice["kind"] == "key")
        for asked in (None, chat.pk)
    )

    assert Decimal(here["per_reply"]) > Decimal(typical["per_reply"]) > 0


def test_the_plan_of_a_chat_whose_account_is_gone(connected):
    """R36."""
    chat = Conversation.objects.create(person=connected, account="gone", created_at=THEN, updated_at=THEN)
    found = fallback_plan(connected, "gone", chat.pk, THEN)

    assert (found["label"], found["limit"]["at"], len(found["choices"])) == ("gone", False, 2)


@pytest.mark.parametrize("slug", ["gone", "", "auto"])
def test_an_unknown_account_is_a_lookup_error(connected, slug):
    """doors.md: 404."""
    with pytest.raises(LookupError):
        fallback_plan(connected, slug, None, THEN)


def test_a_zone_that_this_machine_does_not_know_is_utc(connected):
    """Times."""
    Preferences.objects.filter(pk=connected.pk).update(time_zone="Nowhere/Land", hour_cycle="")

    assert "resets 4:00\u00a0PM" in fallback_plan(connected, "openai", None, THEN)["choices"][0]["facts"]
