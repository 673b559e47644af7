"""The shapes of answers, as JSON Schema (doors.md), and which call gives which."""

from typing import Any

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
WHOLE: Shape = {"type": "integer"}
YES_NO: Shape = {"type": "boolean"}
TIME: Shape = {"type": "string", "format": "date-time"}
USD: Shape = {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}
ANY: Shape = {}


def maybe(shape: Shape) -> Shape:
    """That, or null."""
    return {"anyOf": [shape, {"type": "null"}]}


def one_of(*values: str) -> Shape:
    """One of those words."""
    return {"type": "string", "enum": list(values)}


def many(shape: Shape) -> Shape:
    """A list of those."""
    return {"type": "array", "items": shape}


def named(name: str) -> Shape:
    """The shape of that name."""
    return {"$ref": f"#/components/schemas/{name}"}


def thing(**fields: Shape) -> Shape:
    """An object with all of those fields; more may come with later versions."""
    # `from` and the like can't be written as an argument: an underscore at the end is left off.
    fields = {name.rstrip("_"): shape for name, shape in fields.items()}
    return {"type": "object", "properties": fields, "required": list(fields)}


CONSENT = maybe(one_of("own", "named", "paid_on", "once"))
KIND = one_of("plan", "key", "local")
ROOM = thing(
    state=one_of("ok", "low", "none", "unknown"),
    percent_left=maybe({"type": "number", "minimum": 0, "maximum": 100}),
    resets_at=maybe(TIME),
    window=maybe(TEXT),
)
MODEL = thing(id=TEXT, label=TEXT)
SKIP = maybe(thing(code=TEXT, text=TEXT))
_CHAT: dict[str, Shape] = {
    "id": WHOLE,
    "title": TEXT,
    "account": TEXT,
    "model": TEXT,
    "agent": maybe(WHOLE),
    "tools": many(TEXT),
    "spend_cap": maybe(USD),
    "spent": USD,
    "waits_until": maybe(TIME),
    "created_at": TIME,
    "updated_at": TIME,
}

SCHEMAS: dict[str, Shape] = {
    "Problem": {
        "type": "object",
        "properties": {
            "type": TEXT,
            "title": TEXT,
            "status": WHOLE,
            "detail": TEXT,
            "code": TEXT,
            "errors": many(thing(at=TEXT, what=TEXT)),
        },
        "required": ["type", "title", "status", "detail"],
    },
    "Account": thing(
        slug=TEXT,
        engine=TEXT,
        label=TEXT,
        identity=maybe(TEXT),
        kind=KIND,
        model=TEXT,
        state=one_of("ok", "signed_out", "unreachable", "wrong_key", "no_credit", "disabled"),
        carries_on=YES_NO,
        own_limit=maybe(USD),
        room=ROOM,
        windows=many(
            thing(
                name=TEXT,
                used_percent=maybe({"type": "number"}),
                resets_at=maybe(TIME),
                models=many(TEXT),
                read_at=TIME,
            )
        ),
        blocked_until=maybe(TIME),
        refused_until=maybe(TIME),
        shares_account=TEXT,
    ),
    "Preferences": thing(
        default_account=TEXT,
        default_model=TEXT,
        limit_fallback=TEXT,
        limit_order=many(TEXT),
        limit_return=YES_NO,
        limit_paid=YES_NO,
        offline_fallback=YES_NO,
        month_budget=maybe(USD),
        time_zone=TEXT,
        hour_cycle=maybe(one_of("h12", "h23")),
    ),
    "FallbackPlan": thing(
        engine=TEXT,
        label=TEXT,
        limit=thing(
            at=YES_NO,
            until=maybe(TIME),
            reason=maybe(one_of("window", "blocked", "refused", "budget", "key_limit")),
        ),
        preference=TEXT,
        answers=maybe(TEXT),
        choices=many(
            thing(
                id=TEXT,
                label=TEXT,
                kind=KIND,
                ways=many(TEXT),
                account=TEXT,
                answers_by=TEXT,
                model=MODEL,
                room=ROOM,
                per_reply=maybe(USD),
                skip=SKIP,
                facts=TEXT,
            )
        ),
        local=thing(account=TEXT, model=MODEL, allowed=YES_NO, skip=SKIP),
        wait=thing(until=maybe(TIME)),
    ),
    "Turn": thing(
        id=WHOLE,
        state=one_of("queued", "running", "waiting", "capped", "done", "failed", "stopped", "interrupted"),
        text=TEXT,
        answer=TEXT,
        account=maybe(TEXT),
        model=maybe(TEXT),
        input_tokens=maybe(WHOLE),
        output_tokens=maybe(WHOLE),
        cost=maybe(USD),
        created_at=TIME,
        ended_at=maybe(TIME),
        until=maybe(TIME),
        failure=maybe(thing(code=TEXT, text=TEXT)),
        replaced_by=maybe(WHOLE),
        attempts=many(
            thing(
                account=TEXT,
                model=TEXT,
                state=TEXT,
                refusal=maybe(thing(kind=one_of("limit", "refused", "money"), until=maybe(TIME))),
                partial=TEXT,
                cost=maybe(USD),
                consent=CONSENT,
            )
        ),
        calls=many(
            thing(
                id=WHOLE,
                name=TEXT,
                title=TEXT,
                account=TEXT,
                state=one_of("asked", "allowed", "running", "done", "failed", "declined"),
                arguments={"type": "object"},
                outcome=TEXT,
                seconds=maybe({"type": "number"}),
                forgotten=YES_NO,
            )
        ),
    ),
    "Line": thing(id=WHOLE, turn=maybe(WHOLE), kind=TEXT, text=TEXT, data={"type": "object"}, at=TIME),
    "ConversationRow": thing(**_CHAT),
    "Conversation": thing(**_CHAT, turns=many(named("Turn")), lines=many(named("Line"))),
    "ConversationPage": thing(items=many(named("ConversationRow")), next=maybe(TEXT)),
    "SwitchedBack": thing(account=TEXT, model=TEXT, until=maybe(TIME)),
    "Ledger": thing(
        entries=many(
            thing(
                id=WHOLE,
                account=TEXT,
                model=TEXT,
                conversation=maybe(WHOLE),
                turn=maybe(WHOLE),
                state=one_of("held", "settled"),
                input_tokens=maybe(WHOLE),
                output_tokens=maybe(WHOLE),
                cost=maybe(USD),
                priced_by=one_of("provider", "list", "none"),
                estimated=YES_NO,
                consent=CONSENT,
                at=TIME,
            )
        ),
        next=maybe(WHOLE),
        sums={"type": "object", "additionalProperties": USD},
        total=USD,
        held=USD,
        unpriced=WHOLE,
    ),
}


def _json(description: str, shape: Shape) -> Shape:
    return {"description": description, "content": {"application/json": {"schema": shape}}}


EVENTS: Shape = {
    "description": "The turn's events: queued, routed, offline, attempt, delta, tool, discard, progress, line, then "
    "one of done, failed, stopped, interrupted, waiting, capped",
    "content": {"text/event-stream": {"schema": thing(id=TEXT, event=TEXT, data=TEXT)}},
}
NOTHING: Shape = {"description": "Done"}
_TURN = _json("The turn", named("Turn"))
_CHAT_WHOLE = _json("The conversation", named("Conversation"))
_ONE = "/conversations/{conversation_id}"
_TURNS = _ONE + "/turns/{turn_id}"

ANSWERS: dict[tuple[str, str], dict[int, Shape]] = {
    ("GET", "/accounts"): {200: _json("The accounts", many(named("Account")))},
    ("PATCH", "/accounts/{slug}"): {200: _json("The account", named("Account"))},
    ("POST", "/accounts/{slug}/check"): {200: _json("The account", named("Account"))},
    ("GET", "/preferences"): {200: _json("The preferences", named("Preferences"))},
    ("PATCH", "/preferences"): {200: _json("The preferences", named("Preferences"))},
    ("GET", "/fallback"): {200: _json("The plan", named("FallbackPlan"))},
    ("POST", "/conversations"): {201: _CHAT_WHOLE},
    ("GET", "/conversations"): {200: _json("A page", named("ConversationPage"))},
    ("GET", _ONE): {200: _CHAT_WHOLE},
    ("PATCH", _ONE): {200: _CHAT_WHOLE},
    ("DELETE", _ONE): {204: NOTHING},
    ("POST", _ONE + "/limit-back"): {200: _json("Whose the chat is again", named("SwitchedBack"))},
    ("DELETE", _ONE + "/limit-back"): {204: NOTHING},
    ("POST", _ONE + "/messages"): {200: EVENTS, 202: _TURN},
    ("GET", _TURNS + "/events"): {200: EVENTS},
    ("POST", _TURNS + "/stop"): {202: _TURN},
    ("POST", _TURNS + "/retry"): {202: _TURN},
    ("POST", _TURNS + "/answer-with"): {202: _TURN},
    ("POST", _TURNS + "/tools/{call_id}"): {202: _TURN},
    ("GET", "/ledger"): {200: _json("A month", named("Ledger"))},
}
