"""What an account is handed of a chat (R20, R31)."""

from conch.turns.handoff import CUT_OFF, Said, handed, length


def test_an_answer_of_another_is_marked_with_who_gave_it_in_a_plain_line_before_it():
    """R20: never in the person's words, nothing missing, nothing twice."""
    said = [
        Said(1, "hi", "hello", "codex", "Codex"),
        Said(2, "and?", "so", "claude-code", "Claude Code"),
        Said(3, "now"),
    ]

    messages = handed(said, "codex").messages

    assert [(m.role, m.text) for m in messages] == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "and?"),
        ("assistant", "[Claude Code answered:]\nso"),
        ("user", "now"),
    ]


def test_what_was_cut_off_is_marked_and_a_failed_message_without_text_stands_alone():
    """R31."""
    said = [
        Said(1, "one", "half", "codex", "Codex", cut=True),
        Said(2, "two", "", "codex", "Codex", cut=True),
        Said(3, "three"),
    ]

    texts = [m.text for m in handed(said, "codex").messages]

    assert texts == ["one", f"half\n\n{CUT_OFF}", "two", "three"]


def test_too_long_a_chat_loses_its_oldest_whole_messages_and_never_the_newest():
    """R31."""
    said = [Said(n, "word " * 200, "answer " * 200, "codex", "Codex") for n in range(1, 11)] + [
        Said(11, "the newest " * 50)
    ]

    short = handed(said, "codex", fits=3_000)

    assert short.messages[-1].text == "the newest " * 50
    assert short.tokens <= 3_000
    assert short.left_out + len(short.messages) == 21
    assert length(said) > 3_000


def test_the_newest_message_is_sent_whole_even_where_it_alone_does_not_fit():
    said = [Said(1, "old", "answer", "codex", "Codex"), Said(2, "x" * 9_000)]

    assert [len(m.text) for m in handed(said, "codex", fits=10).messages] == [9_000]
