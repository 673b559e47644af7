"""Money: decimal USD at the doors, nanodollars (integers) in the database (R28)."""

from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal

NANO = 10**9


def to_nano(usd: Decimal, *, up: bool = False) -> int:
    """USD as whole nanodollars, to the nearest, or upwards (for holds)."""
    return int((usd * NANO).to_integral_value(ROUND_CEILING if up else ROUND_HALF_UP))


def from_nano(nano: int) -> Decimal:
    """Nanodollars as USD, exactly."""
    return Decimal(nano) / NANO


def plain(usd: Decimal) -> str:
    """A decimal string for the API: no exponent, no needless zeros ("0.021", "10", "0")."""
    text = f"{usd:f}"
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text


def shown(usd: Decimal) -> str:
    """As people read it: "$6.90"; below a cent with two digits that count: never as if free."""
    if usd == 0 or abs(usd) >= Decimal("0.01"):
        return f"${usd.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"
    digits = -usd.adjusted() + 1
    return f"${round(usd, digits):f}"
