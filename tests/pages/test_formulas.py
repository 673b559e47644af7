"""Formulas in answers: drawn by the browser from MathML, money left alone, nothing of the text's own let through."""

import random
import re

import pytest

from conch.chat.markdown import blocks, render, render_tail, words


def math_of(html):
    return re.findall(r"<math.*?</math>", html)


@pytest.mark.parametrize(
    "text", [r"so \(x^2\) is", "so $x^2$ is", "so $x^2$, or", r"(\(x^2\))", "**$x^2$**", "| a |\n|---|\n| $x^2$ |\n"]
)
def test_a_formula_in_a_line_is_drawn(text):
    (drawn,) = math_of(render(text))
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in drawn
    assert 'display="inline"' in drawn


@pytest.mark.parametrize(
    "text",
    [
        "\\[\n\\frac{a}{b}\n\\]",
        "So:\n$$\n\\frac{a}{b}\n$$\nand on",
        "$$\\frac{a}{b}$$",
        "- one\n\n  \\[ \\frac{a}{b} \\]\n",
    ],
)
def test_a_formula_on_lines_of_its_own_is_a_block_that_scrolls_by_itself(text):
    html = render(text)
    (drawn,) = math_of(html)
    assert 'display="block"' in drawn
    assert "<mfrac>" in drawn
    assert 'class="formula" tabindex="0" role="group" aria-label="Formula"' in html


def test_what_stands_right_behind_a_formula_stays():
    html = render("$$\nx\n$$ where *x* is one.\nAnd on.")
    assert "where <em>x</em> is one." in html
    assert "And on." in html


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10.",
        "$5-$10 a month, $20/month",
        "US$5 is $5.",
        "between $20 and $x",
        "$HOME/bin:$PATH",
        r"\$5 and 6\$",
        "$$$ expensive $$$",
    ],
)
def test_money_and_names_of_variables_are_no_formulas(text):
    assert math_of(render(text)) == []
    assert words(text) == text.replace("\\", "")


@pytest.mark.parametrize("text", ["`$x$`", "```\n$x$\n$$\ny\n$$\n```", "    $$\n    y\n    $$"])
def test_code_keeps_its_dollars(text):
    html = render(text)
    assert math_of(html) == []
    assert "$x$" in html or "$$" in html


@pytest.mark.parametrize("formula", ["x_{", r"\ce{H2O}", r"\unheard{x}", r"\left(" * 2000, "{" * 3000, "x" * 5000])
def test_what_cannot_be_read_is_shown_as_it_was_written(formula):
    html = render(f"$$\n{formula}\n$$")
    assert math_of(html) == []
    assert formula in html


def test_nothing_of_the_texts_own_comes_in_by_a_formula():
    """SEC: no address, style, script or size that would cover the page."""
    html = render(
        r"$\href{javascript:alert(1)}{x}$ $\text{<script>alert(1)</script><img src=x>}$ $\hspace{9999em}y$"
        r" $\color{red}{z}$ $\style{color:red}{w}$ $\class{caret}{v}$"
    )
    assert not re.search(r"<(?:script|img|a)\b| (?:href|style|class|mathcolor)=|9999em", html)
    assert "<mtext>&lt;script&gt;alert(1)&lt;/script&gt;&lt;img&nbsp;src=x&gt;</mtext>" in html


def test_hostile_schedules_of_marks_let_nothing_through_and_hold_nothing_up():
    parts = [
        "\\frac",
        "{",
        "}",
        "^",
        "_",
        "x",
        "\\left(",
        "\\right)",
        "&",
        "\\\\",
        "\\text{<b>}",
        "$",
        "$$",
        "\\(",
        "\\)",
    ]
    parts += ["\\[", "\\]", "\\sqrt", "\\href{x:y}{z}", "\\hspace{9em}", "<", ">", "&lt;", "\n", " "]
    chosen = random.Random(4)
    for _ in range(500):
        html = render("".join(chosen.choice(parts) for _ in range(chosen.randint(1, 60))))
        assert not re.search(r"<[^>]* (?:href|style|on\w+)=", html), html
    assert len(render("\\[\n" * 20_000 + "> $$\n" * 5_000)) > 0


def arrive(text, size):
    finished, pending = [], ""
    for start in range(0, len(text), size):
        done, pending = blocks(pending + text[start : start + size])
        finished += done
    return finished, pending


def test_an_answer_with_formulas_is_the_same_however_it_arrives():
    """STR: what was shown as finished stays so, whatever comes after."""
    lines = [
        "$$",
        "\\[",
        "\\]",
        "x = y",
        "",
        "text $a$ and",
        "- item",
        "  more",
        "# H",
        "```",
        "> $$",
        "1. one",
        "   $$",
    ]
    lines += ["\\] tail", "$$ a $$", "$$ a $$ b", "$$ a"]
    chosen = random.Random(9)
    for _ in range(400):
        text = "\n".join(chosen.choice(lines) for _ in range(chosen.randint(1, 12))) + "\n"
        finished, tail = arrive(text, 1)
        assert (finished, tail) == arrive(text, 10_000), text
        assert "".join(render(each) for each in (*finished, tail)) == render(text), text


def test_a_formula_that_is_on_its_way_stays_together():
    assert render_tail("$$\nx = a_1").count("formula") == 1
