"""A small world to decide in: accounts, chats and questions, each said in a few words; it is always NOW."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from routing.decision import decide
from routing.facts import Budget, Chat, Local, Model, Needs, Preferences, Question, Refusal, Run, Way, Window

NOW = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)
GPT = Model("gpt-5.5", "GPT-5.5", tools=True, images=True, context=200_000)
OPUS = Model("claude-opus-4-8", "Claude Opus 4.8", tools=True, images=True, context=200_000)
TINY = Model("tiny", "Tiny", tools=False, images=False, context=2_000)
MONTH_END = datetime(2026, 11, 1, tzinfo=UTC)


def later(**span):
    return NOW + timedelta(**span)


def earlier(**span):
    return NOW - timedelta(**span)


def window(used, *, resets=None, name="5-hour", minutes=300, covers=(), read_at=NOW):
    return Window(name, used, resets, tuple(covers), minutes, read_at)


def weekly(used, *, resets=None, **more):
    return window(used, resets=resets, name="weekly", minutes=10_080, **more)


def blocked(until=None, *, at=None, **more):
    return Refusal("blocked", at or earlier(minutes=5), until or later(minutes=10), until, **more)


def refused(until=None, *, at=None, **more):
    return Refusal("refused", at or earlier(minutes=5), until or later(minutes=10), until, **more)


def plan(slug, **facts):
    """A plan with room, of an engine that it shares with nobody."""
    given = {
        "engine": slug,
        "label": slug.replace("-", " ").title(),
        "billing": "plan",
        "shares_account": slug,
        "identity": f"{slug}:1",
        "model": GPT,
        "windows": (window(28.0, resets=later(hours=4)),),
    }
    return Way(slug=slug, **(given | facts))


def key(slug, price="0.02", **facts):
    """A key with a price for a typical reply, and half of it for the smallest hold; None: it can't be priced."""
    typical = None if price is None else Decimal(price)
    given = {
        "engine": slug,
        "label": slug.title(),
        "billing": "key",
        "shares_account": slug,
        "model": GPT,
        "typical": typical,
        "per_reply": typical,
        "smallest": None if typical is None else typical / 2,
        "key_hint": "4f2a",
    }
    return Way(slug=slug, **(given | facts))


def at_limit(way, until=None):
    """The same with its shortest window full."""
    return replace(way, windows=(window(100.0, resets=until or later(hours=2)),))


def no_reset(way):
    """The same, having said no without a time."""
    return replace(way, refusals=(blocked(),), windows=())


def budget(amount, spent="0", held="0"):
    return Budget(Decimal(amount), Decimal(spent), Decimal(held), MONTH_END)


LOCAL = Local(present=True, model=TINY)


def question(*ways, own=None, chat=None, needs=None, run=None, local=None, money=None, **preferences):
    """A chat of the first account (or `own`); everything else as it is where nobody ever chose."""
    own = own or ways[0].slug
    chat = replace(chat, account=own) if chat is not None else Chat(own)
    return Question(
        own,
        ways,
        Preferences(**preferences),
        money or Budget(ends_at=MONTH_END),
        local or Local(),
        chat,
        needs or Needs(tokens=100, newest_tokens=10),
        run or Run(),
    )


def decided(*ways, **asked):
    return decide(question(*ways, **asked), NOW)


def skips(decision):
    """Choice id → the code of why it is passed over."""
    return {why.id: why.skip.code if why.skip else None for why in decision.why}
