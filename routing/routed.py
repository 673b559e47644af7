"""The facts of the routed line: who carries on for whom, who was passed over on the way, whether it is said (R22)."""

from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple

from routing.facts import AUTO, KEY, LastRoute
from routing.outcome import ModelRef, Passed, Routed
from routing.room import TIMED
from routing.survey import Seen, Survey, ref

# Two resets within a minute are one (Times).
SAME_RESET = timedelta(minutes=1)


class Carrier(NamedTuple):
    """Who answers for the chat's account."""

    slug: str
    model: ModelRef
    label: str
    billing: str
    stayed: bool = False
    per_reply: Decimal | None = None


def routed_by(survey: Survey, who: Carrier, by: str, passed: tuple[Passed, ...]) -> Routed:
    """The facts of the line; `by` as in Routed. Switch back is offered unless one press chose it (R23)."""
    own, limit, key = survey.own, survey.limit, who.billing == KEY
    before = ref(own.way.model) if own is not None else ModelRef("", "")
    return Routed(
        from_=survey.question.engine,
        to=who.slug,
        until=limit.until,
        from_model=before.id,
        to_model=who.model.id,
        stayed=who.stayed,
        from_label=survey.own_label,
        to_label=who.label,
        from_model_label=before.label,
        to_model_label=who.model.label,
        to_billing=who.billing,
        reason=limit.reason,
        window=limit.window,
        by=by,
        switch_back=by != "once",
        per_reply=who.per_reply if key else None,
        month_left=survey.month_left() if key else None,
        unpriced=key and who.per_reply is None,
        passed=passed,
    )


def passed_over(survey: Survey, chosen: Seen | None) -> tuple[Passed, ...]:
    """Who was passed over for a limit, or was tried in this run, on the way to who answers."""
    passed: list[Passed] = []
    on_the_way, pick = survey.mode == AUTO, survey.pick
    for seen in survey.others:
        on_the_way = on_the_way and seen is not chosen
        standing = seen.best()
        if seen is chosen or not standing.codes:
            continue
        code = standing.codes[0]
        tried = bool(survey.tried) and any(way.slug in survey.tried for way in seen.choice.ways)
        picked = chosen is None and seen is pick
        if tried or ((on_the_way or picked) and code in TIMED):
            skip = standing.skip(code)
            passed.append(Passed(standing.way.slug, seen.label, code, skip.until, skip.retry_at))
    return tuple(passed)


def is_said(survey: Survey, routed: Routed) -> bool:
    """R22: said once for the same from, to and until; after a failure always, since it replaces the failure.

    A route that one press chose isn't the preference's: the first by the preference is said, with its Switch back, and
    a press on a waiting line rewrites that (R23).
    """
    last, run = survey.chat.last_route, survey.question.run
    if run.after_failure or last is None or last.folded or (last.once and routed.by != "once"):
        return True
    if routed.by == "once" and run.waiting_since is not None:
        return True
    return (last.from_, last.to) != (routed.from_, routed.to) or not _same_reset(last, routed)


def _same_reset(last: LastRoute, routed: Routed) -> bool:
    if last.until is None or routed.until is None:
        return last.until is routed.until
    return abs(last.until - routed.until) <= SAME_RESET
