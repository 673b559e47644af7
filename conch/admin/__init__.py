"""The admin: accounts and ledger to read, prices to override, people. Never a secret, never the text of a chat."""

import csv
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils import timezone

from conch.accounts.signin import make_link
from conch.admin.filters import AccountFilter, MonthFilter
from conch.admin.prices import PriceForm
from conch.models import Account, Conversation, Entry, Person, PriceOverride, Refusal
from conch.money import from_nano, shown

# Django's admins take their model as a type parameter only for the type checker.
if TYPE_CHECKING:
    RowAdmin = admin.ModelAdmin[Any]
    PriceAdmin = admin.ModelAdmin[PriceOverride]
    PeopleAdmin = UserAdmin[Person]
else:
    RowAdmin = PriceAdmin = admin.ModelAdmin
    PeopleAdmin = UserAdmin

admin.site.site_header = admin.site.site_title = "Conch"
admin.site.index_title = "Who is here, what is connected, what it cost"
admin.site.unregister(Group)


class ReadOnly(RowAdmin):
    """Rows that are shown and never changed here: a change would falsify history."""

    list_per_page = 100
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nothing is added by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is changed by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is taken away by hand."""
        return False


@admin.register(Account)
class AccountAdmin(ReadOnly):
    """Connected accounts with what is known of their room; secrets are in no field of it."""

    list_display = (
        "slug",
        "person",
        "engine",
        "label",
        "state",
        "room",
        "blocked_until",
        "refused_until",
        "removed_at",
    )
    list_filter = ("state", "engine", "carries_on", ("removed_at", admin.EmptyFieldListFilter))
    search_fields = ("slug", "label", "whose", "person__username")
    list_select_related = ("person",)
    fields: ClassVar = [
        *("person", "slug", "engine", "label", "whose", "plan", "organization", "key_hint", "base_url", "model"),
        *("state", "carries_on", "own_limit", "room", "windows_now", "blocked_until", "refused_until"),
        *("connected_at", "removed_at", "read_at", "read_failed_at"),
    ]
    readonly_fields = ("own_limit", "room", "windows_now", "blocked_until", "refused_until")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Rows with their windows and refusals: two queries more, however many rows."""
        return super().get_queryset(request).prefetch_related("windows", "refusals")

    @admin.display(description="most used")
    def room(self, account: Account) -> str:
        """The fullest window, as it was last read."""
        used = [window.used_percent for window in account.windows.all() if window.used_percent is not None]
        return f"{max(used):.0f}%" if used else "not known"

    @admin.display(description="windows")
    def windows_now(self, account: Account) -> str:
        """Each window with what is used of it and when it resets."""
        return "; ".join(
            f"{window.name}: {'?' if window.used_percent is None else round(window.used_percent)}% used, "
            f"resets {window.resets_at or 'at an unknown time'}, read {window.read_at}"
            for window in account.windows.all()
        )

    @admin.display(description="own limit")
    def own_limit(self, account: Account) -> str:
        """The limit that its person set for a calendar month."""
        return "none" if account.own_limit_nano is None else shown(from_nano(account.own_limit_nano))

    @admin.display(description="blocked until")
    def blocked_until(self, account: Account) -> object:
        """The reset of a block that still holds."""
        return _latest(account, Refusal.Kind.BLOCKED)

    @admin.display(description="refused until")
    def refused_until(self, account: Account) -> object:
        """When an account that refused is asked again."""
        return _latest(account, Refusal.Kind.REFUSED)


def _latest(account: Account, kind: str) -> object:
    """The latest retry of the refusals of that kind that still hold; None: there is none."""
    now = timezone.now()
    return max(
        (row.retry_at for row in account.refusals.all() if row.kind == kind and row.retry_at > now), default=None
    )


@admin.register(Entry)
class EntryAdmin(ReadOnly):
    """The ledger: filtered by person, account, month and consent, with the sums of what is shown."""

    change_list_template = "admin/conch/entry/change_list.html"
    list_display = ("at", "person", "account", "model", "state", "tokens", "cost", "priced_by", "estimated", "consent")
    list_filter = (MonthFilter, AccountFilter, "consent", "state", "priced_by", "person")
    list_select_related = ("person",)
    ordering = ("-id",)
    actions = ("as_csv",)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Taking rows away is no action here, taking them along is."""
        return {name: action for name, action in super().get_actions(request).items() if name == "as_csv"}

    @admin.display(description="tokens in, out")
    def tokens(self, entry: Entry) -> str:
        """Tokens of the prompt and of the answer."""
        return f"{_count(entry.input_tokens)}, {_count(entry.output_tokens)}"

    @admin.display(description="cost", ordering="cost_nano")
    def cost(self, entry: Entry) -> str:
        """What it cost; while it runs the most it can cost; unknown is never zero (R33)."""
        if entry.state == Entry.State.HELD:
            return f"up to {shown(from_nano(entry.hold_nano))}" if entry.hold_nano is not None else "unknown yet"
        return "price unknown" if entry.cost_nano is None else shown(from_nano(entry.cost_nano))

    @admin.action(description="As CSV")
    def as_csv(self, request: HttpRequest, queryset: QuerySet[Entry]) -> StreamingHttpResponse:
        """The chosen rows as a file."""
        return ledger_csv(queryset)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with its sums below the filters."""
        response = super().changelist_view(request, extra_context)
        changes = getattr(response, "context_data", {}).get("cl")
        if changes is not None:
            response.context_data["sums"] = sums(changes.queryset)  # type: ignore[attr-defined]
        return response


def _count(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"


def sums(entries: QuerySet[Entry]) -> dict[str, Any]:
    """What the entries come to, in one query: spent, held, entries, entries without a price."""
    held, settled = Q(state=Entry.State.HELD), Q(state=Entry.State.SETTLED)
    found = entries.order_by().aggregate(
        entries=Count("id"),
        unpriced=Count("id", filter=settled & Q(cost_nano=None)),
        spent=Sum("cost_nano", filter=settled, default=0),
        held=Sum("hold_nano", filter=held, default=0),
    )
    return found | {"spent": shown(from_nano(found["spent"])), "held": shown(from_nano(found["held"]))}


class _Echo:
    """A file that hands back what is written to it, for the csv module."""

    def write(self, row: str) -> str:
        return row


def ledger_csv(entries: QuerySet[Entry]) -> StreamingHttpResponse:
    """Entries as a CSV file, sent as they are read."""
    names = ("id", "at", "person__username", "account", "engine", "model", "conversation", "turn", "month", "state")
    more = ("input_tokens", "output_tokens", "hold_nano", "cost_nano", "priced_by", "estimated", "consent", "extra")
    writer = csv.writer(_Echo())
    rows: Iterable[Any] = entries.values_list(*names, *more).iterator(chunk_size=1000)

    def lines() -> Iterable[str]:
        yield writer.writerow([*names, *more])
        for row in rows:
            yield writer.writerow(row)

    headers = {"Content-Disposition": 'attachment; filename="ledger.csv"'}
    return StreamingHttpResponse(lines(), content_type="text/csv; charset=utf-8", headers=headers)


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    """Chats as numbers. Titles, instructions and messages are their person's alone, and in no field of it."""

    list_display = ("id", "person", "account", "model", "turns_made", "spent", "created_at", "updated_at", "deleted_at")
    list_filter = ("person", ("deleted_at", admin.EmptyFieldListFilter))
    list_select_related = ("person",)
    list_display_links = None
    ordering = ("-updated_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Rows with the number of their turns."""
        found: QuerySet[Any] = super().get_queryset(request).annotate(turn_count=Count("turns"))
        return found

    @admin.display(description="turns")
    def turns_made(self, conversation: Any) -> int:
        """How many messages were sent."""
        return int(conversation.turn_count)

    @admin.display(description="spent", ordering="spent_nano")
    def spent(self, conversation: Conversation) -> str:
        """What the chat cost so far."""
        return shown(from_nano(conversation.spent_nano))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The list alone: a chat's own page would show what was written."""
        return obj is None and super().has_view_permission(request, obj)


@admin.register(PriceOverride)
class PriceOverrideAdmin(PriceAdmin):
    """Prices that go before the bundled list, in USD per million tokens."""

    form = PriceForm
    list_display = ("engine", "model", "input_per_million", "cached_input_per_million", "output_per_million")
    list_filter = ("engine",)


@admin.register(Person)
class PersonAdmin(PeopleAdmin):
    """People: who they are and whether they are staff. Inviting somebody ends with a one-time link to hand over."""

    list_display = ("username", "is_owner", "is_staff", "is_active", "last_login", "date_joined")
    list_filter = ("is_staff", "is_active")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Who", {"fields": ("first_name", "last_name", "email")}),
        ("May", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("When", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")

    actions = ("signin_link",)

    @admin.action(description="Make a one-time sign-in link to hand over")
    def signin_link(self, request: HttpRequest, queryset: QuerySet[Person]) -> None:
        """Invite somebody, or let them in again: a link that signs in as them, once, within ten minutes."""
        people = list(queryset[:2])
        if len(people) != 1:
            self.message_user(request, "Choose one person: a link signs in as one.", messages.ERROR)
        elif people[0].is_owner and people[0].pk != request.user.pk:
            self.message_user(request, "The owner makes their own links.", messages.ERROR)
        else:
            address = request.build_absolute_uri(f"/signin/{make_link(people[0], timezone.now())}")
            self.message_user(request, f"For {people[0].username}, once, within ten minutes: {address}")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The owner of the machine stays."""
        return not (obj is not None and obj.is_owner) and super().has_delete_permission(request, obj)
