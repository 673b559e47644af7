"""Moves in *In this order* (R4, doors.md)."""

from settings_ui.ordering import after_move

CLAUDE, CODEX, KEY = ("claude-code",), ("codex", "codex-cli"), ("openrouter",)


def test_a_move_swaps_the_choice_with_the_next_one_shown():
    assert after_move(["codex", "openrouter"], [CODEX, KEY, CLAUDE], [CODEX, KEY], "down:codex") == [
        "openrouter",
        "codex",
    ]


def test_at_the_ends_and_for_nonsense_nothing_moves():
    for move in ("up:codex", "down:openrouter", "sideways:codex", "down:gone", "", "down", "down:claude-code"):
        assert after_move([], [CLAUDE, CODEX, KEY], [CODEX, KEY], move) is None


def test_slugs_that_are_not_shown_keep_their_places():
    """doors.md: slugs not shown keep their places in limit_order."""
    stored = ["gone", "codex", "claude-code", "openrouter"]

    order = after_move(stored, [CODEX, CLAUDE, KEY], [CODEX, KEY], "up:openrouter")

    assert order == ["gone", "openrouter", "claude-code", "codex"]


def test_a_plan_that_nobody_moved_does_not_fall_behind_a_key():
    """R4: plans before keys, unless the person moved them: Claude Code is not on screen when it is at its limit."""
    order = after_move([], [CLAUDE, CODEX, KEY], [CODEX, KEY], "up:openrouter")

    assert order == ["claude-code", "openrouter", "codex"]


def test_a_choice_counts_at_its_best_way_and_moves_as_one():
    """R4: two ways into one account are one row."""
    order = after_move(["codex-cli", "openrouter", "codex"], [CODEX, KEY], [CODEX, KEY], "down:codex")

    assert order == ["openrouter", "codex"]


def test_two_tabs_pressing_at_once_both_move():
    """Relative moves: the second one acts on what the first one left."""
    first = after_move([], [CODEX, CLAUDE, KEY], [CODEX, CLAUDE, KEY], "down:codex")
    again = after_move(first, [CLAUDE, CODEX, KEY], [CLAUDE, CODEX, KEY], "up:openrouter")

    assert again == ["claude-code", "openrouter", "codex"]
