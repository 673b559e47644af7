"""Markdown of an answer as safe HTML (copy.md 2.3).

No HTML of the text's own, no images (a link in their place: nothing is fetched on render), headings two levels down,
classes only; then an allow-list over all of it. While an answer streams, finished blocks are rendered once, and only
the tail again: a top-level block is finished when the first line of a following one is complete, so where blocks end
follows from the text alone, however it arrived.
"""

import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from html import escape, unescape
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import nh3
from django.utils.html import strip_tags
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from conch.chat import formulas

# Longer code than this is shown without colours: colouring it would hold up the page.
MOST_COLOURED = 60_000

# Characters that turn the direction of what follows. In code, links and names each is shown by its number (INP-03).
BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Overrides have no use in plain text either.
OVERRIDES = re.compile("[\u202d\u202e]")
# Words of a link that name a host; "main.py" alone is a file.
NAMES_A_HOST = re.compile(r"(?:(?:https?:)?//|(?=www\.))([\w-]+(?:\.[\w-]+)+)|^([\w-]+(?:\.[\w-]+)+)$", re.IGNORECASE)
FILES = (
    "c",
    "cfg",
    "css",
    "csv",
    "go",
    "h",
    "html",
    "js",
    "json",
    "md",
    "py",
    "rs",
    "sh",
    "sql",
    "toml",
    "ts",
    "txt",
    "yml",
)
# One asterisk that begins emphasis, one that ends it.
OPENS = re.compile(r'(?<![\w*\\])\*(?=[\w"(\[])')
CLOSES = re.compile(r"(?<=[^\s*\\])\*(?!\w)")
TO_DO = re.compile(r"\[([ xX])\] ")
LINE = re.compile(r"[^\n]*\n|[^\n]+")

TAGS = {
    "a", "b", "blockquote", "br", "button", "code", "del", "div", "em", "figcaption", "figure", "h3", "h4", "h5", "h6",
    "hr", "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
DIRECTED = {"p", "h3", "h4", "h5", "h6", "li", "th", "td", "blockquote"}
ATTRIBUTES: dict[str, set[str]] = {
    "a": {"class", "href"},
    "button": {"aria-label", "class", "type"},
    "code": {"class", "dir"},
    "div": {"aria-label", "class", "role", "tabindex"},
    "figure": {"class"},
    "ol": {"start"},
    "pre": {"aria-label", "role", "tabindex"},
    "span": {"class"},
    **{tag: {"dir"} for tag in DIRECTED},
    "li": {"class", "dir"},
    "td": {"class", "dir"},
    "th": {"class", "dir"},
}


def render(text: str) -> str:
    """A whole answer as HTML."""
    return _render(text)


def blocks(text: str) -> tuple[list[str], str]:
    """The finished blocks of a text that is still growing, as Markdown, and its tail.

    Joined, they are the text again. Taking finished blocks off the front and asking again gives the same blocks.
    """
    lines = LINE.findall(text)
    whole = "".join(lines if text.endswith("\n") else lines[:-1])
    starts = [one.map[0] for one in _splitter().parse(whole) if one.level == 0 and one.nesting >= 0 and one.map]
    if len(starts) < 2:
        return [], text
    edges = [0, *starts[1:]]
    finished = ["".join(lines[begin:end]) for begin, end in pairwise(edges)]
    return finished, "".join(lines[edges[-1] :])


def render_tail(text: str) -> str:
    """The unfinished end of an answer: what is open in its last line is closed, so that nothing flickers."""
    return _clean(_parser().render(_closed(text), {"plain": len(text) > MOST_COLOURED // 8}))


def words(text: str) -> str:
    """What an answer says, as words on one line."""
    return " ".join(unescape(strip_tags(render(text))).split())


def visible(text: str) -> str:
    """Escaped plain text in which characters that override its direction are shown."""
    return _marked(escape(text), OVERRIDES)


def plain_name(text: str) -> str:
    """A name (a title, a label) in which no character turns the direction of what follows."""
    return BIDI.sub("", text)


@lru_cache(maxsize=512)
def _render(text: str) -> str:
    return _clean(_parser().render(text, {}))


def _closed(text: str) -> str:
    if text.lstrip().startswith(("```", "~~~")) or text.count("```") % 2:
        return text
    if text.rpartition("\n\n")[2].count("`") % 2:
        return f"{text}`"
    text = text.rstrip("* ")
    last = text.rpartition("\n\n")[2]
    if last.count("**") % 2:
        return f"{text}**"
    single = last.replace("**", "")
    return f"{text}*" if len(OPENS.findall(single)) > len(CLOSES.findall(single)) else text


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS | formulas.TAGS,
        attributes=ATTRIBUTES | formulas.ATTRIBUTES,
        attribute_filter=_kept,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """An answer has no links into Conch itself."""
    if tag in formulas.TAGS:
        return formulas.kept(attribute, value)
    if tag == "a" and attribute == "href" and not value.lower().startswith(("http:", "https:", "mailto:")):
        return None
    return value


def _marked(html: str, characters: re.Pattern[str]) -> str:
    return characters.sub(lambda found: f'<span class="hidden-mark">U+{ord(found[0]):04X}</span>', html)


Env = MutableMapping[str, Any]


class _Renderer(RendererHTML):
    """Markdown-it's renderer with Conch's own code blocks, tables, links and pictures."""

    def text(self, tokens: Sequence[Token], idx: int, _options: Any, env: Env) -> str:
        return _marked(escape(tokens[idx].content), BIDI if env.get("link") else OVERRIDES)

    def code_inline(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Env) -> str:
        return f'<code dir="ltr">{_marked(escape(tokens[idx].content), BIDI)}</code>'

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Env) -> str:
        return self.fence(tokens, idx, options, env)

    def fence(self, tokens: Sequence[Token], idx: int, _options: Any, env: Env) -> str:
        language = BIDI.sub("", (tokens[idx].info.split() or [""])[0])[:30]
        code = _marked(_coloured(tokens[idx].content, language, plain=bool(env.get("plain"))), BIDI)
        label = escape(language)
        return (
            f'<figure class="codeblock"><figcaption><span>{label or "text"}</span>'
            '<button type="button" class="icon copy-code" aria-label="Copy code"></button></figcaption>'
            f'<pre tabindex="0" role="group" aria-label="Code{", " + label if label else ""}">'
            f'<code dir="ltr">{code}</code></pre></figure>\n'
        )

    def table_open(self, _tokens: Sequence[Token], _idx: int, _options: Any, _env: Env) -> str:
        return '<div class="tbl" tabindex="0" role="group" aria-label="Table"><table>'

    def table_close(self, _tokens: Sequence[Token], _idx: int, _options: Any, _env: Env) -> str:
        return "</table></div>"

    def formula(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Env) -> str:
        return formulas.shown(tokens[idx].content, tokens[idx].markup)

    def formula_block(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Env) -> str:
        token = tokens[idx]
        drawn = formulas.shown(token.content, token.markup, closed=token.meta["closed"])
        return f'<div class="formula" tabindex="0" role="group" aria-label="Formula">{drawn}</div>\n'

    def image(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Env) -> str:
        """A picture is a link to it, never fetched: its address could carry the chat away (SEC-02)."""
        source = str(tokens[idx].attrs.get("src", ""))
        words = tokens[idx].content or urlsplit(source).hostname or "picture"
        return f'<a class="pic" href="{escape(source)}">{_marked(escape(words), BIDI)}</a>'

    def link_open(self, tokens: Sequence[Token], idx: int, _options: Any, env: Env) -> str:
        env["link"] = str(tokens[idx].attrs.get("href", ""))
        env["link_text"] = _text_until_close(tokens, idx)
        return f'<a href="{escape(env["link"])}">'

    def link_close(self, _tokens: Sequence[Token], _idx: int, _options: Any, env: Env) -> str:
        goes_to = _other_host(env.pop("link", ""), env.pop("link_text", ""))
        return f'</a> <span class="hidden-mark">{escape(goes_to)}</span>' if goes_to else "</a>"


def _text_until_close(tokens: Sequence[Token], idx: int) -> str:
    words = []
    for token in tokens[idx + 1 :]:
        if token.type == "link_close":
            break
        words.append(token.content)
    return "".join(words)


def _other_host(href: str, words: str) -> str:
    """Where a link really goes, if its words name another host (INP-03)."""
    try:
        host = (urlsplit(href).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
    found = NAMES_A_HOST.search(BIDI.sub("", words).strip())
    named = (found[1] or found[2]).lower().removeprefix("www.") if found else ""
    if not named or named.rpartition(".")[2] in FILES:
        return ""
    return host if host and named != host else ""


def _coloured(code: str, language: str, *, plain: bool) -> str:
    if plain or not language or len(code) > MOST_COLOURED:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough", "linkify"])
    assert parser.linkify is not None
    # Without a scheme "orders.py" would be a link to Paraguay.
    parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    parser.core.ruler.push("conch", _shaped)
    formulas.add_to(parser)
    return parser


@lru_cache(maxsize=1)
def _splitter() -> MarkdownIt:
    """The same blocks, without what is within them: where one ends needs no more, and takes a third of the time."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    formulas.add_to(parser, inline=False)
    return parser


def _shaped(state: Any) -> None:
    """Headings two levels down, a direction of its own for each paragraph, alignment by class."""
    for number, token in enumerate(state.tokens):
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
        if token.nesting == 1 and token.tag in DIRECTED:
            token.attrs["dir"] = "auto"
        if token.type == "inline" and token.children and token.level >= 3:
            _to_do(token.children[0], state.tokens, number)
        aligned = re.search(r"text-align:(right|center)", str(token.attrs.pop("style", "")))
        if aligned:
            token.attrs["class"] = aligned[1]


def _to_do(first: Token, tokens: Sequence[Token], number: int) -> None:
    """An entry that is to be ticked off, or is: a box in the place of its "[ ]" and of its marker."""
    entry = tokens[number - 2]
    box = TO_DO.match(first.content) if entry.type == "list_item_open" else None
    if box is not None:
        entry.attrs["class"] = "to-do"
        first.content = f"{'☐' if box[1] == ' ' else '☑'}\u00a0{first.content[box.end() :]}"
