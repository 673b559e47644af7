"""The ChatGPT backend that Codex speaks to: windows as headers and as JSON, what it won't take (providers.md 4)."""

from typing import Any

from tests.simulator.keys import Key, Window
from tests.simulator.wire import Refusal

# What this backend refuses or clients strip (providers.md 4).
UNSUPPORTED = (
    "max_output_tokens",
    "temperature",
    "top_p",
    "previous_response_id",
    "stream_options",
    "safety_identifier",
    "prompt_cache_retention",
)


def detail(status: int, said: str) -> Refusal:
    return Refusal(status, {"detail": said})


def refusal(status: int, kind: str, message: str, headers: dict[str, str] | None = None, **facts: Any) -> Refusal:
    return Refusal(status, {"error": {"type": kind, "message": message, **facts}}, headers or {})


def unauthorized() -> Refusal:
    return detail(401, "Unauthorized")


def complaint(body: dict[str, Any]) -> Refusal | None:
    """What the backend itself would not take."""
    said = next((f"Unsupported parameter: {name}" for name in UNSUPPORTED if name in body), "")
    if not said and body.get("store") is not False:
        said = "Store must be set to false"
    if not said and not body.get("stream"):
        said = "Stream must be set to true"
    if not said and not isinstance(body.get("instructions"), str) and not _developer_speaks(body):
        said = "Instructions are required"
    if not said and not isinstance(body.get("input"), list):
        said = "Input must be a list"
    return detail(400, said) if said else None


def _developer_speaks(body: dict[str, Any]) -> bool:
    """The Codex program says its instructions as a message of the developer's (0.163, seen on its wire)."""
    given = body.get("input")
    return isinstance(given, list) and any(item.get("role") == "developer" for item in given)


def slots(key: Key) -> list[tuple[str, Window]]:
    """The windows by slot; the shortest is the primary one, also when it is the weekly one."""
    now = key.clock.now()
    plain = sorted((each for each in key.windows if not each.model), key=lambda each: each.minutes)
    for window in plain:
        window.roll(now)
    return list(zip(("primary", "secondary"), plain, strict=False))


def headers(key: Key) -> dict[str, str]:
    """The x-codex headers that come with every answer."""
    now = key.clock.now()
    shown = {"x-codex-plan-type": key.plan}
    for slot, window in slots(key):
        shown[f"x-codex-{slot}-used-percent"] = f"{window.used:g}"
        shown[f"x-codex-{slot}-window-minutes"] = str(window.minutes)
        if (reset := window.reset_shown(now)) is not None:
            shown[f"x-codex-{slot}-reset-at"] = str(int(reset))
    for name, value in (("has-credits", "false"), ("unlimited", "false"), ("balance", "0")):
        shown[f"x-codex-credits-{name}"] = value
    return shown


def rate_limits_event(key: Key) -> dict[str, Any]:
    """The same windows as the event that opens a stream."""
    now = key.clock.now()
    limits: dict[str, Any] = {"primary": None, "secondary": None}
    for slot, window in slots(key):
        reset = window.reset_shown(now)
        limits[slot] = {"used_percent": window.used, "window_minutes": window.minutes}
        limits[slot]["reset_at"] = None if reset is None else int(reset)
    none_bought = {"has_credits": False, "unlimited": False, "balance": None}
    return {"type": "codex.rate_limits", "plan_type": key.plan, "rate_limits": limits, "credits": none_bought}


def usage(key: Key) -> dict[str, Any]:
    """`GET /wham/usage`: windows in seconds, and whether the backend would answer."""
    full = key.full()
    limit: dict[str, Any] = {"allowed": full is None, "limit_reached": full is not None}
    limit |= {"primary_window": None, "secondary_window": None}
    for slot, window in slots(key):
        limit[f"{slot}_window"] = _window(key, window)
    return {
        "user_id": key.user_id,
        "account_id": key.account_id,
        "email": key.email,
        "plan_type": key.plan,
        "rate_limit": limit if key.windows else None,
        "code_review_rate_limit": None,
        "additional_rate_limits": None,
        "credits": {"has_credits": False, "unlimited": False, "balance": "0"},
        "rate_limit_reached_type": None if full is None else {"type": "rate_limit_reached"},
    }


def _window(key: Key, window: Window) -> dict[str, Any]:
    now = key.clock.now()
    reset = window.reset_shown(now)
    return {
        "used_percent": round(window.used),
        "limit_window_seconds": window.minutes * 60,
        "reset_after_seconds": None if reset is None else int(reset - now),
        "reset_at": None if reset is None else int(reset),
    }


def accounts_check(key: Key) -> dict[str, Any]:
    """`GET /wham/accounts/check`, which the Codex program asks before a turn (clis.md 2.2)."""
    account = {
        "id": key.account_id,
        "plan_type": key.plan,
        "structure": "personal",
        "workspace_backend_origin": "NO_CONSTRAINT",
        "account_routing_override": "NO_CONSTRAINT",
    }
    return {"accounts": [account], "account_ordering": [key.account_id], "default_account_id": key.account_id}
