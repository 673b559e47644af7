"""A stream that is taken up again gives a page each block of an answer once, whatever happened meanwhile."""

import random

import pytest

from conch.chat import markdown as growing_markdown
from conch.chat.growing import Growing
from conch.chat.markdown import render

ANSWER = "First **one**.\n\nSecond.\n\n1. a\n\n2. b\n\n```py\nx = 1\n\ny = 2\n```\n\nLast words"


class Page:
    """What a browser has: its blocks, its tail, and the id of the last event."""

    def __init__(self):
        self.blocks, self.tail, self.place = [], "", ""

    def takes(self, growing):
        for kind, html in growing.told():
            if kind == "clear":
                self.blocks = []
            elif kind == "block":
                self.blocks.append(html)
            else:
                self.tail = html
            self.place = growing.place

    @property
    def shown(self):
        return "".join(self.blocks) + self.tail


def pieces(text, seed):
    chance = random.Random(seed)
    while text:
        size = chance.randint(1, 12)
        yield text[:size]
        text = text[size:]


def test_blocks_are_given_once_and_the_tail_again():
    growing, page = Growing(run=1), Page()
    for piece in pieces(ANSWER, 1):
        growing.add(piece)
        page.takes(growing)

    assert page.shown == render(ANSWER)
    assert page.place == "1.0.3"


@pytest.mark.parametrize("seed", range(20))
def test_a_page_that_reconnects_anywhere_has_nothing_twice_and_nothing_missing(seed):
    """STR: Last-Event-ID; what is told again may come in other pieces."""
    chance, page = random.Random(seed), Page()
    text = ""
    growing = Growing(run=1)
    for piece in pieces(ANSWER, seed):
        text += piece
        growing.add(piece)
        page.takes(growing)
        if chance.random() < 0.3:
            growing = Growing(run=1, had=page.place)
            growing.add(text)
            page.takes(growing)

    assert page.shown == render(ANSWER)


def test_text_that_leaves_the_answer_leaves_the_page():
    """R17: what a refused attempt had streamed is no part of the answer."""
    growing, page = Growing(run=1), Page()
    growing.add("Wrong.\n\nStill wrong.\n\nAnd")
    page.takes(growing)
    growing.discard()
    growing.add("Right.\n\nAll right.")
    page.takes(growing)

    assert page.shown == render("Right.\n\nAll right.")


@pytest.mark.parametrize("before", [True, False])
def test_a_page_that_comes_back_after_a_discard_is_given_only_the_new_text(before):
    page = Page()
    first = Growing(run=1)
    first.add("Wrong.\n\nStill wrong.\n\nAnd")
    page.takes(first)
    if not before:
        first.discard()
        first.add("Right.\n\nAll")
        page.takes(first)

    again = Growing(run=1, had=page.place)
    again.add("Wrong.\n\nStill wrong.\n\nAnd")
    page.takes(again)
    again.discard()
    again.add("Right.\n\nAll right.")
    page.takes(again)

    assert page.shown == render("Right.\n\nAll right.")


@pytest.mark.parametrize("had", ["", "1.0.3", "9", "x.y.z", "2.0.1.4"])
def test_a_page_from_another_run_is_given_all_of_it_anew(had):
    page = Page()
    page.blocks, page.place = ["<p>old</p>"], had
    growing = Growing(run=2, had=had)
    growing.add("New.\n\nText.")
    page.takes(growing)

    assert page.shown == render("New.\n\nText.")


def test_lines_that_end_as_windows_ends_them_are_lines():
    growing, page = Growing(run=1), Page()
    for piece in ("One.\r", "\n\r\nTwo.\r\n", "\r\nThree."):
        growing.add(piece)
        page.takes(growing)

    assert page.shown == render("One.\n\nTwo.\n\nThree.")


def test_a_long_table_that_grows_takes_little_more_than_its_renderings(monkeypatch):
    """Bad input: nothing is parsed at each of a thousand pieces, only when the page is told."""
    parsed, blocks = [], growing_markdown.blocks
    monkeypatch.setattr(growing_markdown, "blocks", lambda text: (parsed.append(text), blocks(text))[1])
    growing = Growing(run=1)
    for row in range(1_000):
        growing.add(f"| {row} | **x** |\n")
        if row % 100 == 99:
            list(growing.told())

    assert len(parsed) == 10


def test_what_splits_a_text_into_blocks_sees_the_same_blocks_as_what_renders_them():
    table = "| a | b |\n|---|---|\n" + "| 1 | [x]: y |\n" * 40
    text = f"# One\n\n{table}\n[1]: https://x.example\n\n> quoted\n> more\n\n- a\n\n  b\n\n{ANSWER}"

    finished, tail = growing_markdown.blocks(text)

    assert "".join(finished) + tail == text
    assert [block.split("\n")[0] for block in finished[:4]] == ["# One", "| a | b |", "> quoted", "- a"]
