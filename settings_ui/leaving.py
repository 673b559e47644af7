"""Taking everything along as one JSON file, and deleting everything."""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.contrib.auth import logout
from django.core.serializers.json import DjangoJSONEncoder
from django.forms.models import model_to_dict
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from conch.models import (
    Account,
    Agent,
    Attachment,
    Conversation,
    Entry,
    Line,
    Person,
    Preferences,
    Routine,
    ToolServer,
    Turn,
)
from conch.tools import signing_in
from conch.turns import doors
from settings_ui import devices
from settings_ui.forms import DeleteForm
from settings_ui.viewing import HttpRequest, page, visit

SECRET = ("sealed_key", "key_fingerprint", "sealed_environment", "sealed_headers", "sealed_sign_in")
PIECE = 200


@require_safe
def export(request: HttpRequest) -> StreamingHttpResponse:
    """Everything that is mine, but for secrets, as one JSON file, sent while it is read."""
    here = visit(request)
    headers = {"Content-Disposition": f'attachment; filename="conch-{here.person.username}.json"'}
    return StreamingHttpResponse(everything(here.person), content_type="application/json", headers=headers)


def everything(person: Person) -> Iterator[str]:
    """The file, in pieces: who, preferences, accounts, agents, routines, tools, chats with what was said, ledger."""
    preferences = model_to_dict(Preferences.objects.get(person=person))
    accounts = [_account(row) for row in Account.objects.filter(person=person).order_by("pk")]
    yield f'{{"name": {_json(person.username)}, "preferences": {_json(preferences)}, "accounts": {_json(accounts)}'
    for name, kept in (("agents", Agent), ("routines", Routine), ("tool_servers", ToolServer)):
        rows = kept.objects.filter(person=person).order_by("pk")
        yield f', "{name}": {_json([model_to_dict(row, exclude=SECRET) | {"id": row.pk} for row in rows])}'
    yield ', "conversations": ['
    chats = Conversation.objects.filter(person=person, deleted_at=None, temporary=False).order_by("pk")
    for number, chat in enumerate(chats.iterator(chunk_size=PIECE)):
        yield from _chat(chat, "," if number else "")
    yield '], "ledger": ['
    entries = Entry.objects.filter(person=person).order_by("pk")
    for number, entry in enumerate(entries.iterator(chunk_size=PIECE)):
        yield ("," if number else "") + _json(model_to_dict(entry) | {"id": entry.pk})
    yield "]}"


def _account(row: Account) -> dict[str, Any]:
    """An account with what its models were found or said to take; never what opens it."""
    takes = [model_to_dict(ability, exclude=("id", "account")) for ability in row.abilities.order_by("pk")]
    return model_to_dict(row, exclude=SECRET) | {"abilities": takes}


def _chat(chat: Conversation, comma: str) -> Iterator[str]:
    """One chat: its turns with their attempts and images, and its lines."""
    facts = model_to_dict(chat) | {"id": chat.pk}
    lines = [model_to_dict(line) for line in Line.objects.filter(conversation=chat).order_by("pk")]
    yield f'{comma}{_json(facts)[:-1]}, "lines": {_json(lines)}, "turns": ['
    turns = Turn.objects.filter(conversation=chat).order_by("pk").prefetch_related("attempts")
    for number, turn in enumerate(turns.iterator(chunk_size=PIECE)):
        attempts = [model_to_dict(attempt) for attempt in turn.attempts.all()]
        said = model_to_dict(turn, exclude=("owner", "lease_until")) | {"id": turn.pk, "attempts": attempts}
        yield ("," if number else "") + _json(said | {"attachments": [_file(row) for row in _files(turn)]})
    yield "]}"


def _files(turn: Turn) -> Iterator[Attachment]:
    return Attachment.objects.filter(turn=turn).order_by("pk").select_related("picture").iterator(chunk_size=1)


def _file(row: Attachment) -> dict[str, str]:
    picture = row.picture
    return {"name": row.name, "media_type": picture.media_type, "data": b64encode(bytes(picture.data)).decode()}


def _json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest) -> HttpResponse:
    """Say what deleting means; with the name typed, do it. The owner of the machine stays."""
    here = visit(request)
    form = DeleteForm(request.POST or None, person=here.person)
    if here.person.is_owner or request.method != "POST" or not form.is_valid():
        status = 422 if request.method == "POST" else 200
        context = {"form": form, "owner": here.person.is_owner}
        return page(request, "delete.html", context, current="/settings/you", status=status)
    stop_all(here.person)
    devices.end_others(here.person, request.session.session_key, here.viewer.now)
    async_to_sync(signing_in.sign_out_everywhere)(here.person, here.viewer.now)
    logout(request)
    here.person.delete()
    messages.success(request, "Everything of yours is deleted.")
    return redirect("signin")


def stop_all(person: Person) -> None:
    """Stop what still runs or waits, so that nobody is asked for somebody who is gone."""
    unfinished = Turn.objects.filter(conversation__person=person).exclude(state__in=Turn.ENDS)
    for turn_id in list(unfinished.order_by("-pk").values_list("pk", flat=True)):
        async_to_sync(doors.stop)(person.pk, turn_id)
