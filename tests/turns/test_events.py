"""A run is told again exactly as it was told: every event once, the text whole, whatever id one starts from."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from conch.turns.events import told_again

PIECES = st.lists(
    st.one_of(
        st.tuples(st.just("delta"), st.text(min_size=1, max_size=5)),
        st.tuples(st.sampled_from(["attempt", "progress", "line", "tool", "discard"]), st.just("")),
    ),
    max_size=20,
)


def told(pieces):
    """The run as it was told live, and what the database holds of it."""
    position, answer, rows, events = 1, "", [SimpleNamespace(position=1, kind="queued", data={})], [(1, "queued", "")]
    for kind, text in pieces:
        position += len(text) if kind == "delta" else 1
        events.append((position, kind, text))
        if kind == "delta":
            answer += text
        else:
            rows.append(SimpleNamespace(position=position, kind=kind, data={}))
            answer = "" if kind == "discard" else answer
    return SimpleNamespace(answer=answer), rows, events


@given(PIECES)
def test_a_run_told_again_has_every_event_that_is_no_text_once_and_in_order(pieces):
    turn, rows, events = told(pieces)

    again = [(event.id, event.kind) for event in told_again(turn, rows, 0) if event.kind != "delta"]

    assert again == [(position, kind) for position, kind, _ in events if kind != "delta"]


@given(PIECES, st.integers(0, 60))
def test_the_text_beyond_any_id_is_whole_and_comes_once(pieces, after):
    turn, rows, events = told(pieces)
    last_discard = max((position for position, kind, _ in events if kind == "discard"), default=0)

    again = "".join(event.data["text"] for event in told_again(turn, rows, after) if event.kind == "delta")

    expected = ""
    for position, kind, text in events:
        if kind == "delta" and position > last_discard and position > after:
            expected += text[max(0, after - (position - len(text))) :]
    assert again == expected


@given(PIECES)
def test_ids_grow(pieces):
    turn, rows, _ = told(pieces)

    ids = [event.id for event in told_again(turn, rows, 0)]

    assert ids == sorted(set(ids))
