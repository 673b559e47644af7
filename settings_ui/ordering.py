"""Moves in *In this order*: one step of one choice, on what is shown. Pure."""

from collections.abc import Sequence

from routing.ranking import moved

# The slugs of a choice's ways; the first is its id.
Ways = tuple[str, ...]


def after_move(stored: Sequence[str], every: Sequence[Ways], shown: Sequence[Ways], move: str) -> list[str] | None:
    """`limit_order` after a move such as "down:codex"; None where that is no move, or goes no further.

    `every`: all choices in the order in force; `shown`: those that the person sees, in the same order. Slugs that
    aren't shown keep their places (doors.md).
    """
    way, _, slug = move.partition(":")
    step = {"up": -1, "down": 1}.get(way)
    if step is None:
        return None
    order = moved(with_places(stored, every, shown), shown, slug, step)
    return None if order is None else list(order)


def with_places(stored: Sequence[str], every: Sequence[Ways], shown: Sequence[Ways]) -> list[str]:
    """The stored order with a place for each choice that is shown.

    Those that have none follow in the order in force, with the unshown ones that stand before them: a plan that nobody
    moved would otherwise fall behind a key.
    """
    missing = [ways for ways in every if not any(slug in stored for slug in ways)]
    last = max((place for place, ways in enumerate(missing) if ways in shown), default=-1)
    return [*stored, *(ways[0] for ways in missing[: last + 1])]
