"""Money: prices, holds, settlement, the month (product.md, Money)."""

from conch.ledger.audit import Difference, check, orphans, recount
from conch.ledger.holds import NoRoom, book_extra, hold, key_limit, release, settle
from conch.ledger.months import change_zone, month_end, month_of

__all__ = [
    "Difference",
    "NoRoom",
    "book_extra",
    "change_zone",
    "check",
    "hold",
    "key_limit",
    "month_end",
    "month_of",
    "orphans",
    "recount",
    "release",
    "settle",
]
