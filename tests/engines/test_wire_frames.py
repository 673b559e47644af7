"""Server-Sent Events out of any pieces of bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conch.engines.base import EngineFault
from conch.engines.wire_frames import Frame, FrameReader
from conch.engines.wire_text import Seam, clean, clean_json, money, number, percent


def read(*chunks: bytes) -> list[Frame]:
    reader = FrameReader()
    return [frame for chunk in chunks for frame in reader.feed(chunk)]


def test_str_09_characters_cut_between_pieces_are_whole():
    """STR-09: Arabic letters and a family emoji; no U+FFFD."""
    pieces = [bytes.fromhex(h) for h in ("646174613a20d985d8", "b1d8add8a8d8a7", "f09f91a8e2808df09f", "91a90a0a")]
    (frame,) = read(*pieces)
    assert frame.data == "مرحبا👨‍👩"
    assert "\ufffd" not in frame.data


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_way(end):
    stream = end.join(["event: a", "data: one", "data: two", "", ": ping", "", "data:three", "", ""]) + "\n"
    assert read(stream.encode()) == [Frame("a", "one\ntwo"), Frame("", "three")]


def test_an_unfinished_frame_is_none():
    """LIM-18: the closing bytes of the last frame were lost."""
    assert read(b"data: whole\n\nevent: message_stop\ndata: {") == [Frame("", "whole")]


def test_a_byte_order_mark_and_unknown_fields_are_skipped():
    assert read(b"\xef\xbb\xbfdata: x\nid: 3\nretry: 5\nfoo\n\n") == [Frame("", "x")]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.integers(1, 9))
def test_pieces_of_any_size_say_the_same(texts, size):
    stream = "".join(f"data: {text}\n\n" for text in texts).encode()
    assert [frame.data for frame in read(*(stream[at : at + size] for at in range(0, len(stream), size)))] == texts


def test_bounds_hold_for_lines_events_and_streams(monkeypatch):
    monkeypatch.setattr("conch.engines.wire_frames.LONGEST_EVENT", 100)
    monkeypatch.setattr("conch.engines.wire_frames.LONGEST_STREAM", 1000)
    assert len(read(*[b"data: 123456\n\n"] * 50)) == 50
    for stream in ([b"x" * 60] * 2, [b"data: 12345678\n"] * 20, [b"data: 123456\n\n"] * 100):
        with pytest.raises(EngineFault) as fault:
            read(*stream)
        assert fault.value.cut


@given(st.text(st.characters(), max_size=30))
def test_inp_01_cleaned_text_can_be_sent_and_kept(text):
    """INP-01: UTF-8 holds it, no NUL is in it, and what was sound is unchanged."""
    cleaned = clean(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert clean(cleaned) == cleaned
    if all(not 0xD800 <= ord(letter) <= 0xDFFF and letter != "\0" for letter in text):
        assert cleaned == text


@given(st.text(max_size=20), st.integers(1, 5))
def test_inp_01_a_pair_cut_between_pieces_is_joined(text, size):
    """INP-01: as JSON escapes cut anywhere in UTF-16."""
    units = text.encode("utf-16-le", "surrogatepass")
    pieces = [units[at : at + size * 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), size * 2)]
    seam = Seam()
    assert "".join([*map(seam.add, pieces), seam.end()]) == clean(text)


def test_json_is_cleaned_through_and_through():
    assert clean_json({"a\0": ["\ud83d", {"b": "\ud83d\ude00"}, 1, None]}) == {"a": ["\ufffd", {"b": "😀"}, 1, None]}


@pytest.mark.parametrize("odd", ["1e307", "NaN", "-1", "", "abc", None, True, "Infinity", [], "-0.1"])
def test_win_01_an_odd_share_is_no_share(odd):
    """WIN-01: unknown, never 0%."""
    assert percent(odd) is None


def test_win_01_a_share_may_pass_the_whole():
    """WIN-01: 120% of the cap; scaled by its source, never by its size."""
    assert percent("1.2", scale=100) == 120
    assert percent("0.30", scale=100) == pytest.approx(30)
    assert percent(0.5) == 0.5
    assert percent("-0.0") == 0


def test_figures_are_finite():
    assert number("12.5") == 12.5
    assert number(float("nan")) is None
    assert money("5.000000000000001e-07") is not None
    assert money("NaN") is None
    assert money(-0.013) < 0
