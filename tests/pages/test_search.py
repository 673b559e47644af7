"""Finding chats: by title and by what was said, in the index of whichever database this is."""

import pytest

from conch.chat.finding import snippet
from conch.models import Conversation, Turn
from tests.conftest import NOW
from tests.pages.conftest import a_chat, a_turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def find(as_ada):
    """The titles of what is found, the best first, and the page."""

    def found(q):
        page = as_ada.get("/chats", {"q": q}, headers={"HX-Request": "true"}).content.decode()
        titles = [piece.split("</span>")[0] for piece in page.split('<span dir="auto">')[1:]]
        return titles, page

    return lambda q: found(q)[0] if not q.startswith("page:") else found(q[5:])[1]


def test_words_are_found_by_how_they_begin_in_titles_messages_and_answers(find, ada):
    a_turn(a_chat(ada, title="Letter"), "to the landlord", "Dear Sir")
    a_turn(a_chat(ada, title="Trip"), "packing", "Take woollen socks")

    assert find("landl") == ["Letter"]
    assert find("SOCKS wool") == ["Trip"]
    assert find("trip socks") == ["Trip"]
    assert find("trip landlord") == []


def test_the_title_comes_first_then_what_fits_best(find, ada):
    a_turn(a_chat(ada, title="In passing"), "a whale " + "and many other words " * 50)
    a_turn(a_chat(ada, title="About it"), "whale whale whale")
    a_turn(a_chat(ada, title="The whale", updated_at=NOW.replace(year=2020)), "something else")

    assert find("whale") == ["The whale", "About it", "In passing"]


def test_words_of_scripts_without_spaces_are_found_anywhere(find, ada):
    a_turn(a_chat(ada, title="京都の旅"), "来週の天気を教えて", "晴れるでしょう。")
    a_turn(a_chat(ada, title="Thai"), "สวัสดีชาวโลก")
    a_turn(a_chat(ada, title="Café"), "Un café crème, s’il vous plaît")

    assert find("天気") == ["京都の旅"]
    assert find("旅") == ["京都の旅"]
    assert find("ชาวโลก") == ["Thai"]
    assert find("café") == ["Café"]


@pytest.mark.parametrize(
    "q", ['"', "'", "'quoted", "a AND", "NEAR(", "*", "(", "words:x", "%", "\\", "-x", "a | !b", ":*"]
)
def test_what_means_something_to_an_index_is_looked_for_as_it_is(find, ada, q):
    a_turn(a_chat(ada, title="Odd"), "nothing of this kind in here")
    a_turn(a_chat(ada, title="Even"), f"whoever writes {q} finds it")

    assert "Even" in find(q)


def test_what_is_nobody_elses_business_is_not_found(find, ada, bob):
    """Another's chats, temporary ones, deleted ones, and versions that an edit folded."""
    a_turn(a_chat(bob, title="Bob’s"), "periwinkle")
    a_turn(a_chat(ada, title="Temporary", temporary=True), "periwinkle")
    a_turn(a_chat(ada, title="Deleted", deleted_at=NOW), "periwinkle")
    edited = a_chat(ada, title="Edited")
    old, new = a_turn(edited, "periwinkle"), a_turn(edited, "limpet")
    Turn.objects.filter(pk=old.pk).update(replaced_by=new)

    assert find("periwinkle") == []
    assert find("limpet") == ["Edited"]


def test_the_index_follows_a_turn_from_its_start_to_its_end(find, ada):
    turn = a_turn(a_chat(ada, title="Here"), "question", "", "running", ended_at=None)
    assert find("question") == ["Here"]

    Turn.objects.filter(pk=turn.pk).update(answer="half of the ans")
    assert find("half") == []
    Turn.objects.filter(pk=turn.pk).update(answer="half of the answer", state="done")
    assert find("half") == ["Here"]
    Turn.objects.filter(pk=turn.pk).update(answer="", state="queued")
    assert find("half") == []
    Turn.objects.filter(pk=turn.pk).update(answer="another", state="stopped")
    assert (find("half"), find("another")) == ([], ["Here"])

    Conversation.objects.all().delete()
    a_chat(ada, title="Empty")
    assert find("question") == []


def test_what_is_found_says_where_and_the_link_leads_there(find, as_ada, ada):
    chat = a_chat(ada, title="Long")
    turns = [a_turn(chat, f"message {number}") for number in range(80)]
    Turn.objects.filter(pk=turns[3].pk).update(state="done", answer="The <b>needle</b> is here")

    page = find("page:needle")
    assert "The &lt;b&gt;<mark>needle</mark>&lt;/b&gt; is here" in page
    href = page.split('href="')[1].split('"')[0]
    assert href == f"/c/{chat.pk}?at={turns[3].pk}#turn-{turns[3].pk}"
    assert f'id="turn-{turns[3].pk}"' in as_ada.get(href).content.decode()


def test_a_snippet_shows_the_words_where_they_are():
    text = "The first words of it. " * 20 + "Then the Zürich NEEDLE in the haystack, and more after it " + "x" * 300

    parts = list(snippet(text, ["needle", "zurich"]))

    assert [part for part, hit in parts if hit] == ["Zürich", "NEEDLE"]
    whole = "".join(part for part, _ in parts)
    assert whole.startswith("…")
    assert whole.endswith("…")
    assert len(whole) < 130


def test_a_page_of_its_own_lists_what_was_found(as_ada, ada):
    a_turn(a_chat(ada, title="Trip"), "packing", "Take socks")

    page = as_ada.get("/chats?q=sock").content.decode()

    assert page.count("<mark>sock</mark>") == 1
    assert "Chats with “sock”" in page
