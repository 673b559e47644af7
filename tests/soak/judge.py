"""Whether anything was lost: what was sent and what the provider billed, against what Conch's database says.

Pure: every finding is one sentence. An empty list means that nothing was lost.
"""

from collections import Counter, defaultdict
from itertools import pairwise

ENDS = {"done", "failed", "stopped", "interrupted"}
SAID = "You said: "


def losses(sent, watched, dump, requests, snapshots=()):
    """Everything that isn't as it must be after the faults, by kind."""
    turns = {turn["id"]: turn for turn in dump["turns"]}
    return [
        *_messages(sent, turns),
        *_ends(turns, dump["events"]),
        *_attempts(dump["attempts"]),
        *_answers(turns),
        *_kept(turns, dump["attempts"], snapshots),
        *_watching(watched, turns),
        *_money(turns, dump, requests),
        *_sent_once(turns, dump["attempts"], requests),
    ]


def _messages(sent, turns):
    """Every message once: one that was confirmed is there, none is there twice, none that nobody sent."""
    by_text = Counter(turn["text"] for turn in turns.values())
    for one in sent.values():
        if len(one.turns) > 1:
            yield f"message {one.key} was confirmed as {len(one.turns)} turns"
        if by_text[one.text] > 1:
            yield f"message {one.key} is there {by_text[one.text]} times"
        if one.turns and not by_text[one.text]:
            yield f"message {one.key} was confirmed and is gone"
    known = {one.text for one in sent.values()}
    yield from (
        f"turn {turn['id']} is of a message that nobody sent" for turn in turns.values() if turn["text"] not in known
    )


def _ends(turns, events):
    """Every turn has ended, by one event, the last of its run."""
    ends, last = Counter(), {}
    for event in events:
        run = (event["turn_id"], event["run"])
        ends[run] += event["kind"] in ENDS
        last[run] = max(last.get(run, (0, "")), (event["position"], event["kind"]))
    for turn in turns.values():
        run = (turn["id"], turn["run"])
        if turn["state"] not in ENDS:
            yield f"turn {turn['id']} has no end: it is {turn['state']}"
        elif ends[run] != 1:
            yield f"turn {turn['id']} has {ends[run]} ends"
        elif last[run] != (turn["position"], turn["state"]):
            yield f"turn {turn['id']} is {turn['state']}, its last event {last[run]}"
    yield from (f"run {run} ended {count} times" for run, count in ends.items() if count > 1)


def _attempts(attempts):
    yield from (f"attempt {one['id']} was never finished" for one in attempts if not one["ended"])


def _answers(turns):
    """An answer is what the provider said: whole when done, its beginning otherwise."""
    for turn in turns.values():
        whole = SAID + turn["text"]
        if turn["state"] == "done" and turn["answer"] != whole:
            yield f"turn {turn['id']} is done with another answer than was given"
        elif not whole.startswith(turn["answer"]):
            yield f"turn {turn['id']} has text that nobody said"


def _kept(turns, attempts, snapshots):
    """What had been written down of an answer at the moment of a fault is still there."""
    partials = defaultdict(list)
    for attempt in attempts:
        partials[attempt["turn_id"], attempt["run"]].append(attempt["partial"])
    for turn_id, run, answer in snapshots:
        turn = turns.get(turn_id)
        if turn is None:
            yield f"turn {turn_id} was there at a fault and is gone"
            continue
        kept = [*partials[turn_id, run], *([turn["answer"]] if turn["run"] == run else [])]
        done = turn["run"] != run and any(
            one["turn_id"] == turn_id and one["run"] == run and one["state"] == "done" for one in attempts
        )
        if answer and not done and not any(one.startswith(answer) for one in kept):
            yield f"turn {turn_id} lost text that was written down"


def _watching(watched, turns):
    """Whoever watched saw each event once, in order, and no text that isn't the answer's."""
    for seen in watched:
        turn = turns.get(seen.turn)
        if turn is None:
            continue
        wrong = [(earlier, later) for earlier, later in pairwise(seen.ids) if later <= earlier]
        if wrong:
            yield f"a watcher of turn {seen.turn} ({turn['state']}) saw events twice or out of order: {wrong}"
        if not (SAID + turn["text"]).startswith(seen.text):
            yield f"a watcher of turn {seen.turn} saw text that nobody said"


def _money(turns, dump, requests):
    """Nothing is held any more, totals are their entries' sums, and each billed request has an entry."""
    yield from (f"entry {one['id']} is still held" for one in dump["entries"] if one["state"] == "held")
    yield from (f"a total differs: {one}" for one in dump["differences"])
    entries = defaultdict(list)
    for entry in dump["entries"]:
        entries[entry["turn"]].append(entry)
    by_text = {turn["text"]: turn["id"] for turn in turns.values()}
    for text, billed in _billed(requests).items():
        booked = entries[by_text.get(text)]
        if len(booked) < len(billed):
            yield f"turn {by_text.get(text)} was billed {len(billed)} times and booked {len(booked)} times"
        told = [
            (one["input_tokens"], one["output_tokens"])
            for one in booked
            if one["state"] == "settled" and not one["estimated"]
        ]
        asked = [(one["input_tokens"], one["output_tokens"]) for one in billed]
        if Counter(told) - Counter(asked):
            yield f"turn {by_text.get(text)} is booked at other tokens than were billed: {told} of {asked}"
    yield from _underestimated(dump, turns)


def _underestimated(dump, turns):
    """An estimate covers what had arrived at least: four characters a token, as the simulator counts."""
    partials = {one["id"]: one["partial"] for one in dump["attempts"]}
    for entry in dump["entries"]:
        arrived = len(partials.get(entry["attempt"]) or "")
        if entry["state"] == "settled" and entry["estimated"] and (entry["output_tokens"] or 0) * 4 < arrived:
            yield f"entry {entry['id']} is estimated below what had arrived"


def _billed(requests):
    """The billed requests to keys, by the message that they carried last."""
    found = defaultdict(list)
    for request in requests:
        if request["billed"] is not None and "/codex/" not in request["path"]:
            found[request["messages"][-1][1]].append(request["billed"])
    return found


def _sent_once(turns, attempts, requests):
    """No message was sent more often than there are attempts to send it; a refused request may be tried again (R8)."""
    taken = Counter(
        one["messages"][-1][1] for one in requests if one["messages"] and not one["outcome"].startswith("refused")
    )
    tries = Counter(turns[one["turn_id"]]["text"] for one in attempts if one["turn_id"] in turns)
    yield from (
        f"{text[:20]!r} was sent {count} times by {tries[text]} attempts"
        for text, count in taken.items()
        if count > tries[text]
    )
