r"""Formulas of an answer as MathML, which browsers draw, scale and read aloud by themselves (copy.md 2.3).

Written as models write them: `\(…\)` and `$…$` within a line, `\[…\]` and `$$…$$` within one or on lines of their own.
A dollar is a formula's only where it can hardly be money: no word right before it, no space at its inside, no word or
number right behind it. What can't be read as a formula is shown as it was written. One on lines of its own that has no
end yet holds together until an empty line: so where blocks end follows from the text alone, however it arrives.
"""

import re
from functools import lru_cache
from html import escape, unescape
from typing import Any
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt

LONGEST = 4_000  # characters of one formula
ENDS = {"\\(": "\\)", "\\[": "\\]", "$$": "$$", "$": "$"}
DISPLAYED = ("\\[", "$$")
LENGTH = re.compile(r"[+-]?(?:\d{1,2}(?:\.\d{1,4})?|\.\d{1,4})(?:em|ex|pt|px)?")

TAGS = {
    "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace", "msqrt",
    "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover",
}  # fmt: skip
LENGTHS = {"depth", "height", "linethickness", "lspace", "maxsize", "minsize", "rspace", "voffset", "width"}
ATTRIBUTES = {
    tag: {
        *("accent", "accentunder", "columnalign", "dir", "display", "displaystyle", "fence", "form", "mathvariant"),
        *("notation", "scriptlevel", "separator", "stretchy"),
        *LENGTHS,
    }
    for tag in TAGS
}


def add_to(parser: MarkdownIt, *, inline: bool = True) -> None:
    """Have the parser know formulas; `inline` False: only those on lines of their own, which are blocks."""
    parser.block.ruler.before("fence", "formula", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    if inline:
        parser.inline.ruler.before("escape", "formula", _inline)


def kept(attribute: str, value: str) -> str | None:
    """The value of an attribute of MathML; None for a length that would leave its place."""
    return value if attribute not in LENGTHS or LENGTH.fullmatch(value) else None


@lru_cache(maxsize=1024)
def mathml(formula: str, *, displayed: bool) -> str:
    """The formula as MathML; "" where it can't be read as one, or only in part. Then it is better shown as written."""
    try:
        drawn = convert_to_element(formula, display="block" if displayed else "inline")
        for part in drawn.iter():
            # It writes characters by their numbers, and commands that it doesn't know as names.
            part.text = unescape(part.text or "")
            if part.tag == "mi" and part.text.startswith("\\"):
                return ""
        drawn.set("dir", "ltr")
        return tostring(drawn, encoding="unicode")
    except (Exception, RecursionError):  # noqa: BLE001  it raises whatever it trips over, with nothing in common
        return ""


def shown(formula: str, mark: str, *, closed: bool = True) -> str:
    """The formula that stood between that mark and its end, as HTML; as it was written where it isn't one."""
    whole = closed and len(formula) <= LONGEST
    drawn = mathml(formula.strip(), displayed=mark in DISPLAYED) if whole else ""
    written = f"{mark}{formula}{ENDS[mark] if closed else ''}"
    return drawn or f'<code dir="ltr">{escape(written)}</code>'


def _inline(state: Any, silent: bool) -> bool:
    mark = next((mark for mark in ENDS if state.src.startswith(mark, state.pos)), "")
    if not mark:
        return False
    begin = state.pos + len(mark)
    end = state.src.find(ENDS[mark], begin, min(begin + LONGEST, state.posMax))
    formula = state.src[begin:end]
    if end < 0 or not formula.strip() or (mark[0] == "$" and not _no_money(state.src, mark, begin, end)):
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content, token.markup = formula, mark
    state.pos = end + len(mark)
    return True


def _no_money(text: str, mark: str, begin: int, end: int) -> bool:
    """Whether the dollars around these places hold a formula."""
    before, behind = begin - len(mark), end + len(mark)
    outside = text[max(0, before - 1) : before] + text[behind : behind + 1]
    if "$" in outside + text[begin]:
        return False
    inside = text[begin] + text[end - 1]
    return mark != "$" or not (any(map(str.isalnum, outside)) or any(map(str.isspace, inside)) or inside[1] == "\\")


def _block(state: Any, first: int, last: int, silent: bool) -> bool:
    """Its first line decides, and nothing that comes after: a page may have shown what was before it as finished."""
    line = _line(state, first)
    mark = line[:2]
    if mark not in DISPLAYED or line.startswith("$$$") or state.is_code_block(first):
        return False
    inside, end, behind = line[2:].partition(ENDS[mark])
    if end and (behind.strip() or not inside.strip()):
        return False
    lines, number = [inside], first + 1
    while not end and number < last and not state.isEmpty(number) and state.sCount[number] >= state.blkIndent:
        inside, end, behind = _line(state, number).partition(ENDS[mark])
        lines.append(inside)
        number += 1
    if not silent:
        token = state.push("formula_block", "", 0)
        token.block, token.content, token.markup = True, "\n".join(lines), mark
        token.meta, token.map = {"closed": bool(end)}, [first, number]
        if behind.strip():
            _paragraph(state, behind.strip())
    state.line = number
    return True


def _line(state: Any, number: int) -> str:
    text: str = state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
    return text


def _paragraph(state: Any, text: str) -> None:
    """Words right behind a formula's end; no block of their own, as where one begins is told by its line."""
    state.push("paragraph_open", "p", 1)
    words = state.push("inline", "", 0)
    words.content, words.children = text, []
    state.push("paragraph_close", "p", -1)
