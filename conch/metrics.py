"""What Prometheus and its like read at /metrics: figures of all processes, from the database they share.

For staff, or by `Authorization: Bearer` with CONCH_METRICS_TOKEN; for anybody else there is no such page. Counts are
taken at most every fifteen seconds. Only the time to the first words is of the process that answers.
"""

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import Count, F, Min, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from conch.models import Attempt, Entry, Turn
from conch.turns import pace

COUNTED_EVERY = 15.0  # seconds
UNFINISHED = [Turn.State.QUEUED, Turn.State.RUNNING, Turn.State.WAITING, Turn.State.CAPPED]
_counted: dict[str, Any] = {}


@login_not_required
@never_cache
@require_GET
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures as text. Raises Http404 for who may not read them."""
    if not (_carries_the_token(request) or getattr(request.user, "is_staff", False)):
        raise Http404
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_LATEST

    registry = CollectorRegistry()
    registry.register(_Figures())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _carries_the_token(request: HttpRequest) -> bool:
    wanted = settings.CONCH_METRICS_TOKEN
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return bool(wanted) and scheme.lower() == "bearer" and constant_time_compare(given.strip(), wanted)


class _Figures:
    """One reading of everything."""

    def collect(self) -> Iterator[Any]:
        """The families of figures."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        counted = _recent(_counts)
        turns = CounterMetricFamily("conch_turns", "Turns that have ended, by their end", labels=["end"])
        _fill(turns, counted["ends"])
        yield turns
        refusals = CounterMetricFamily("conch_refusals", "Attempts that were refused for a limit", labels=["kind"])
        _fill(refusals, counted["refusals"])
        yield refusals
        said = "Turns answered by another account than their chat's own"
        yield CounterMetricFamily("conch_carried_on_turns", said, value=counted["carried_on"])
        unfinished = GaugeMetricFamily("conch_unfinished_turns", "Turns without an end, by state", labels=["state"])
        _fill(unfinished, counted["unfinished"])
        yield unfinished
        said = "How long the oldest message has been kept that could be answered and isn't"
        yield GaugeMetricFamily("conch_queue_age_seconds", said, value=counted["queue_age"])
        yield GaugeMetricFamily("conch_holds", "Requests that money is held for", value=counted["holds"])
        yield GaugeMetricFamily("conch_held_usd", "What they hold together, in USD", value=counted["held"] / 1e9)
        first = HistogramMetricFamily("conch_first_text_seconds", "From the start of a run to its first words, here")
        first.add_metric([], *pace.so_far())
        yield first


def _fill(family: Any, counts: Iterable[tuple[str, int]]) -> None:
    for label, count in counts:
        family.add_metric([label], count)


def _recent(count: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The counts, not older than a quarter of a minute: however often somebody asks, the tables are read seldom."""
    if not _counted or monotonic() - _counted["at"] > COUNTED_EVERY:
        _counted.update(count(), at=monotonic())
    return _counted


def _counts() -> dict[str, Any]:
    ended = Turn.objects.filter(state__in=Turn.ENDS)
    states = dict(Turn.objects.filter(state__in=UNFINISHED).values_list("state").annotate(Count("pk")).order_by())
    oldest = Turn.objects.filter(state=Turn.State.QUEUED).aggregate(at=Min("created_at"))["at"]
    held = Entry.objects.filter(state=Entry.State.HELD).aggregate(holds=Count("pk"), sum=Sum("hold_nano"))
    refused = Attempt.objects.exclude(refusal_kind="").values_list("refusal_kind")
    return {
        "ends": _all(Turn.ENDS, ended.values_list("state").annotate(Count("pk")).order_by()),
        "refusals": _all(("limit", "refused", "money"), refused.annotate(Count("pk")).order_by()),
        "carried_on": ended.filter(~Q(account="") & ~Q(account=F("conversation__account")), state="done").count(),
        "unfinished": [(str(state), states.get(state, 0)) for state in UNFINISHED],
        "queue_age": max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else 0.0,
        "holds": held["holds"],
        "held": held["sum"] or 0,
    }


def _all(labels: Iterable[Any], counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Every label with its count: one that isn't there yet is zero, else its first increase would be missed."""
    known = dict(counts)
    return [(str(label), known.get(label, 0)) for label in labels]
