"""Finding chats by their titles and by what was said in them, the best first, each with where it was said.

The index (migration 0006) finds words by how they begin. Scripts that leave no space between words (Chinese, Japanese,
Thai …) and words without a letter or digit are looked for as they are, anywhere in the text. A chat is found when each
word is in its title or somewhere in it; folded versions, deleted and temporary chats are not looked through.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL

from conch.models import Conversation, Turn

CHATS = 60
MOST_WORDS = 8
MOST_HITS = 1_000
BEFORE, AROUND = 32, 120  # characters of a snippet before the word, and in all
# Thai, Lao, Myanmar, Khmer; kana, CJK with its extensions and compatibility forms.
SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)

HITS = {
    "sqlite": "SELECT turn.conversation_id, conch_search.rowid, -bm25(conch_search) AS rank FROM conch_search"
    " JOIN conch_turn AS turn ON turn.id = conch_search.rowid / 2"
    " WHERE conch_search MATCH %s AND turn.replaced_by_id IS NULL",
    "postgresql": "SELECT turn.conversation_id, found.id, ts_rank(found.words, asked) AS rank"
    " FROM to_tsquery('simple', %s) AS asked, conch_search AS found"
    " JOIN conch_turn AS turn ON turn.id = found.id / 2"
    " WHERE found.words @@ asked AND turn.replaced_by_id IS NULL",
}
OR = {"sqlite": " OR ", "postgresql": " | "}


@dataclass(frozen=True, slots=True)
class Found:
    """A chat that was found; `turn`: where in it, None for its title alone. `parts` of what was said."""

    chat: Conversation
    turn: int | None = None
    parts: tuple[tuple[str, bool], ...] = ()


def found(chats: "QuerySet[Conversation]", q: str) -> list[Found]:
    """Those of the chats that have all the words; by title first, then by how well they fit, then the latest."""
    words = q.split()[:MOST_WORDS]
    for word in words:
        chats = chats.filter(Q(title__icontains=word) | _said(word))
    matching = list(chats.order_by("-updated_at", "-pk")[: CHATS * 4]) if words else []
    places = _places([chat.pk for chat in matching], words)
    titled = {chat.pk for chat in matching if all(word.casefold() in chat.title.casefold() for word in words)}
    best = sorted(matching, key=lambda chat: (chat.pk not in titled, -places.get(chat.pk, (0, 0.0))[1]))[:CHATS]
    texts = _texts([places[chat.pk][0] for chat in best if chat.pk in places])
    return [_found(chat, places.get(chat.pk), texts, words) for chat in best]


def _found(chat: Conversation, place: tuple[int, float] | None, texts: dict[int, str], words: Sequence[str]) -> Found:
    if place is None or place[0] not in texts:
        return Found(chat)
    return Found(chat, place[0] // 2, tuple(snippet(texts[place[0]], words)))


def indexed(word: str) -> bool:
    """Whether the index finds that word: it has a letter or digit, and is of a script with spaces between words."""
    return any(character.isalnum() for character in word) and SPACELESS.search(word) is None


def asked(words: Iterable[str]) -> str:
    """Those words as a query of the index, each by how it begins; any of them."""
    if connection.vendor == "sqlite":
        terms = ['"{}"*'.format(word.replace('"', '""')) for word in words]
    else:
        terms = ["'{}':*".format(word.replace("\\", " ").replace("'", " ")) for word in words]
    return OR[connection.vendor].join(terms)


def _said(word: str) -> "Q | Exists":
    """The chats in which that word was said."""
    if not indexed(word):
        return Exists(_standing(word).filter(conversation=OuterRef("pk")))
    hits = HITS[connection.vendor]
    sql = f"SELECT conversation_id FROM ({hits}) AS hits"  # noqa: S608  no value is written into it
    return Q(pk__in=RawSQL(sql, [asked([word])]))  # noqa: S611  the word is a parameter


def _standing(word: str) -> "QuerySet[Turn]":
    return Turn.objects.filter(Q(text__icontains=word) | Q(answer__icontains=word), replaced_by=None)


def _places(chat_ids: Sequence[int], words: Sequence[str]) -> dict[int, tuple[int, float]]:
    """Chat → the row of the index that fits best, and how well."""
    best: dict[int, tuple[int, float]] = {}
    for word in (word for word in words if not indexed(word)):
        rows = _standing(word).filter(conversation__in=chat_ids).order_by("pk")
        for chat, turn, text in rows.values_list("conversation_id", "pk", "text")[:MOST_HITS]:
            best[chat] = (turn * 2 + (word.casefold() not in text.casefold()), 0.0)
    known = [word for word in words if indexed(word)]
    if chat_ids and known:
        marks = ", ".join(["%s"] * len(chat_ids))
        sql = f"{HITS[connection.vendor]} AND turn.conversation_id IN ({marks}) ORDER BY rank DESC LIMIT {MOST_HITS}"
        with connection.cursor() as cursor:
            cursor.execute(sql, [asked(known), *chat_ids])
            for chat, row, rank in reversed(cursor.fetchall()):
                best[chat] = (row, float(rank))
    return best


def _texts(rows: Sequence[int]) -> dict[int, str]:
    turns = Turn.objects.filter(pk__in={row // 2 for row in rows}).values_list("pk", "text", "answer")
    found_in = {pk: (text, answer) for pk, text, answer in turns}
    return {row: found_in[row // 2][row % 2] for row in rows if row // 2 in found_in}


def snippet(text: str, words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """A few words around the first that was looked for; True for those parts that were."""
    # Marks of Markdown aside: it is read as text here.
    flat = " ".join(re.sub(r"\*\*|`+", "", text).split())
    plain = _plain(flat)
    places = sorted(place for word in words if (place := plain.find(_plain(word))) >= 0)
    start = max(0, (places[0] if places else 0) - BEFORE)
    if start:
        start = plain.find(" ", start, start + BEFORE) + 1 or start
    piece = flat[start : start + AROUND]
    yield ("…" if start else ""), False
    at = 0
    for hit in re.finditer("|".join(re.escape(_plain(word)) for word in words), _plain(piece)):
        yield piece[at : hit.start()], False
        yield piece[hit.start() : hit.end()], True
        at = hit.end()
    yield piece[at:] + ("…" if start + AROUND < len(flat) else ""), False


def _plain(text: str) -> str:
    """The text without case and accents, character for character."""
    return "".join(_base(character) for character in text)


def _base(character: str) -> str:
    if character.isascii():
        return character.lower()
    base = unicodedata.normalize("NFKD", character)[0].lower()
    return base if len(base) == 1 else character
