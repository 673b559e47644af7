"""In which order choices are asked (R4). Room has no part in it."""

from collections.abc import Sequence
from decimal import Decimal

from routing.choices import Choice
from routing.facts import KEY

NOTHING = Decimal(0)


def ranked(choices: Sequence[Choice], limit_order: Sequence[str]) -> list[Choice]:
    """The choices best first: the person's own order, then plans, then keys by the price of a typical reply (R4, R5).

    A choice counts at its best-placed way; slugs that are gone count for nobody; a key that can't be priced is last;
    ties by when they were connected.
    """
    places: dict[str, int] = {}
    for slug in limit_order:
        places.setdefault(slug, len(places))
    return sorted(choices, key=lambda choice: _place(choice, places))


def _place(choice: Choice, places: dict[str, int]) -> tuple[int, bool, bool, Decimal, int]:
    ways, place = choice.ways, 0
    if places:
        unnamed = len(places)
        place = places.get(choice.id, unnamed)
        if len(ways) > 1:
            place = min(places.get(way.slug, unnamed) for way in ways)
    if ways[0].billing != KEY:
        return (place, False, False, NOTHING, choice.number)
    price = ways[0].typical
    return (place, True, price is None, NOTHING if price is None else price, choice.number)


def moved(limit_order: Sequence[str], shown: Sequence[Sequence[str]], slug: str, steps: int) -> tuple[str, ...] | None:
    """The person's order after one of the shown choices moved up (-1) or down (+1); None where it can't move.

    `shown`: the slugs of each choice, in the order on screen. Slugs that aren't shown keep their places (doors.md).
    """
    at = next((place for place, slugs in enumerate(shown) if slug in slugs), None)
    if at is None or not 0 <= at + steps < len(shown):
        return None
    order = list(shown)
    order.insert(at + steps, order.pop(at))
    on_screen = {way for slugs in shown for way in slugs}
    coming = iter([slugs[0] for slugs in order])
    kept: list[str] = []
    for known in dict.fromkeys(limit_order):
        if known not in on_screen:
            kept.append(known)
        elif (following := next(coming, None)) is not None:
            kept.append(following)
    return (*kept, *coming)
