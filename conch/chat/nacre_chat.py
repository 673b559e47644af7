"""What the page of components shows of a chat: a message in each state, and the box as it is in each."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from conch.chat import markdown
from conch.chat.called import Asks, ShownCall
from conch.chat.composing import Answering, Composer, RoomLeft, Row
from conch.chat.pressing import Press
from conch.chat.shown import By, ShownLine, ShownTurn, Written
from conch.copy import calls as call_words
from conch.copy.sentences import Said
from conch.engines.registry import ENGINES

# Samples of the first of each kind, in the registry's order.
CLAUDES, CODEXES, PROGRAMS, _, OPENAIS, ROUTERS = tuple(ENGINES)[:6]
CLAUDE, CODEX = By(CLAUDES, "Claude Code", "Opus 4.8"), By(CODEXES, "Codex · ada@home.example", "GPT-5.5")
QUESTION = "Why is this query slow?\nIt plans for 120 rows and gets 1.4 million."
ANSWER = """The planner thinks that **very few rows** match, so it chooses a nested loop. Two things follow:

1. Refresh the statistics: `ANALYZE orders;`
2. Add an index that covers the filter.

```sql
CREATE INDEX orders_recent ON orders (created_at DESC) WHERE state = 'open';
```

| plan | rows | time |
|---|---:|---:|
| before | 1,400,000 | 2.3 s |
| after | 118 | 4 ms |

> An index is read before it is believed.

See [how plans are chosen](https://docs.example/plans).
"""
BOXES = ("idle", "running", "waits", "key", "unpriced", "refused", "gone")
NOBODYS = 10**15  # no message and no chat has that id: what is pressed on the page of components acts on nothing


def turns(lines: Mapping[str, Said]) -> Iterator[ShownTurn]:
    """A message in each of its states. `lines`: sentences for them, by name."""
    yield _turn(1, by=CLAUDE, answer=ANSWER, edited=True, cost="$0.02", calls=_calls())
    before, written = _line("carried", lines["carried"]), Written("Claude Code", _html("The planner thinks that"))
    yield _turn(2, by=CODEX, answer="Then the statistics are **stale**.", before=(before,), written=(written,))
    yield _turn(3, text="A long paste. " * 400, by=CODEX, answer="I read it.", after=(_line("extra", lines["extra"]),))
    yield _turn(4, state="waiting", before=(_line("waits", lines["waits"]),))
    yield _turn(5, state="failed", by=CLAUDE, answer="The first half", problem=_line("cut", lines["cut"]))
    yield _turn(6, state="failed", problem=_line("held", lines["held"]))
    yield _turn(7, state="waiting", calls=(_asking(),))
    yield _turn(8, state="queued", behind=True)
    yield _turn(9, by=CLAUDE, answer="The last answer can be tried again, also with another account.", retries=True)


def edited() -> SimpleNamespace:
    """A message that is being edited, as its form takes it."""
    return SimpleNamespace(pk=NOBODYS, text=QUESTION, conversation_id=NOBODYS)


def _turn(number: int, **given: Any) -> ShownTurn:
    text = given.pop("text", QUESTION)
    facts: dict[str, Any] = {
        "id": NOBODYS + number,
        "run": 1,
        "conversation": NOBODYS,
        "state": "done",
        "text": mark_safe(markdown.visible(text)),  # noqa: S308  visible() escapes
        "source": text,
        "long": len(text) > 4_000,
        "pictures": (),
        "by": None,
        "before": (),
        "after": (),
        "problem": None,
        "written": (),
        "cost": "",
        "watched": False,
        "behind": False,
        "retries": False,
    }
    return ShownTurn(**facts | given | {"answer": _html(given.get("answer", ""))})


def _html(text: str) -> SafeString:
    return mark_safe(markdown.render(text))  # noqa: S308  render() cleans


def _line(name: str, said: Said) -> ShownLine:
    return ShownLine(f"turn-{name}", said, tuple(Press(button.label, "/nacre", link=True) for button in said.buttons))


def _calls() -> tuple[ShownCall, ...]:
    asked = SafeString('{"words": "slow query"}')
    given = (("done", 1.4, "3 notes found"), ("failed", 60.0, "It took longer than 60 seconds."))
    return tuple(
        ShownCall(f"call-{state}", call_words.in_short("search in Notes", state, took), asked, SafeString(gave))
        for state, took, gave in given
    )


def _asking() -> ShownCall:
    said = call_words.asks("Claude Code", "delete in Notes")
    asks = Asks("asks-1", said, tuple(Press(button.label, "/nacre", link=True) for button in said.buttons))
    short = call_words.in_short("delete in Notes", "asked", None)
    return ShownCall("call-asked", short, SafeString('{"note": 7}'), SafeString(""), asks)


def box(state: str) -> dict[str, Any]:
    """What is around the message box in that state: the context of its templates."""
    answering = ANSWERING.get(state, ANSWERING["idle"])
    refused = state == "refused"
    return {
        "composer": Composer(answering, PLANS, KEYS, HERE, (), first_run=False),
        "running": NOBODYS if state == "running" else None,
        "chat": SimpleNamespace(pk=NOBODYS),
        "problem": "This message has 200,001 characters; 200,000 are allowed." if refused else "",
        "typed": "What was typed stays." if refused else "",
    }


def listed() -> dict[str, Any]:
    """The sidebar's chats: the open one, one with something new, a long title, one from right to left."""
    titles = ("Slow query on orders", "Trip to Lofoten", "A title that is longer than any sidebar is wide", "שאלה קצרה")
    chats = [_Chat(NOBODYS + place, title, unread=place == 1) for place, title in enumerate(titles)]
    return {"days": [("Today", chats[:2]), ("Yesterday", chats[2:])], "unread": 1}


class _Chat(SimpleNamespace):
    def __init__(self, pk: int, title: str, *, unread: bool) -> None:
        super().__init__(pk=pk, title=title, unread=unread)

    def __str__(self) -> str:
        return str(self.title)


ANSWERING = {
    "idle": Answering("first", CODEXES, "Codex", "GPT-5.5", "In your ChatGPT plan.", "Back to Claude Code at 6:00 PM."),
    "waits": Answering(
        "claude",
        CLAUDES,
        "Claude Code",
        "Opus 4.8",
        "In your Claude plan.",
        "Claude Code is at its limit until 6:00 PM: messages wait for it.",
    ),
    "key": Answering(
        "key", ROUTERS, "OpenRouter", "Opus 4.8", "About $0.02 a reply, $6.90 left this month.", costs=True
    ),
    "unpriced": Answering("key", ROUTERS, "OpenRouter", "made/up", "Pay per use; Conch can’t price it.", costs=True),
    "gone": Answering("first", "", "Codex", "", "This chat’s account isn’t connected any more. Choose another."),
}
MODELS = (("gpt-5.5", "GPT-5.5"), ("gpt-5.5-mini", "GPT-5.5 mini"))
PLANS = (
    Row("claude", CLAUDES, "Claude Code", "At its limit until 6:00 PM.", current=True),
    Row("first", CODEXES, "Codex", "72% left, resets 4:30 PM. GPT-5.5", answers=True, model="gpt-5.5", models=MODELS),
    Row("second", CODEXES, "Codex · ada@home.example", "6% left, resets tomorrow 9:00 AM. GPT-5.5"),
    Row("third", PROGRAMS, "Codex CLI", "Signed out."),
)
KEYS = (
    Row("key", ROUTERS, "OpenRouter", "About $0.02 a reply, $6.90 left this month. Opus 4.8"),
    Row("other", OPENAIS, "OpenAI", "This month’s budget is spent."),
)
HERE = Row("local", "local", "SmolLM2 135M", "Free, private: tiny built-in model, often wrong, English only")
ROOMS = (
    RoomLeft("Claude Code", "until 6:00 PM", 0, "none"),
    RoomLeft("Codex", "72%", 72, ""),
    RoomLeft("Codex · ada@home.example", "6%", 6, "low"),
    RoomLeft("Reset since", "resets now", None, ""),
)
