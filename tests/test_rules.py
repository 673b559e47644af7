"""docs/rules.md lists every rule with what holds it; the tests that it and the other pages of docs/ name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROWS = re.findall(r"^\| (R\d+) \| `(\w+)` \| (.+) \|$", (ROOT / "docs/rules.md").read_text(), re.MULTILINE)


def test_every_rule_is_on_the_page_once():
    assert [rule for rule, _, _ in ROWS] == [f"R{number}" for number in range(1, 37)]


@pytest.mark.parametrize(("rule", "example", "modules"), ROWS, ids=[rule for rule, _, _ in ROWS])
def test_what_the_page_says_of_a_rule_is_so(rule, example, modules):
    texts = [(ROOT / "tests" / name).read_text() for name in re.findall(r"`([^`]+)`", modules)]

    assert all(re.search(rf"\b{rule}\b", text) for text in texts)
    assert any(f"def {example}(" in text for text in texts)


def test_every_test_that_the_pages_name_is_there():
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/decisions").glob("*.md")]
    named = {(page.name, path) for page in pages for path in re.findall(r"`(tests/[^`\s*]+)`", page.read_text())}

    named.discard(("adding-an-engine.md", "tests/engines/test_NAME.py"))
    assert ("security.md", "tests/security/test_access_walk.py") in named
    assert {(page, path) for page, path in named if not (ROOT / path).exists()} == set()
