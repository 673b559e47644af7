"""An index of what was said in chats, kept by the database itself: SQLite's FTS5, PostgreSQL's full text.

A row is a message (2 × its turn's id) or what answered it (2 × id + 1); an answer is indexed once, when its turn ends:
while it grows, writing it down costs nothing more. A later migration that has SQLite rebuild conch_turn has to make
the triggers again (tests/pages/test_search.py would tell).
"""

from typing import Any, ClassVar

from django.db import migrations, models

# Written in place of ENDED below.
ENDS = "('done', 'failed', 'stopped', 'interrupted')"

SQLITE = [
    "CREATE VIRTUAL TABLE conch_search USING fts5(words, tokenize = 'unicode61 remove_diacritics 2')",
    """CREATE TRIGGER conch_search_said AFTER INSERT ON conch_turn BEGIN
        INSERT OR REPLACE INTO conch_search (rowid, words) VALUES (NEW.id * 2, NEW.text);
        INSERT OR REPLACE INTO conch_search (rowid, words)
            SELECT NEW.id * 2 + 1, NEW.answer WHERE NEW.answer <> '' AND NEW.state IN ENDED;
    END""",
    """CREATE TRIGGER conch_search_ended AFTER UPDATE OF state ON conch_turn
        WHEN NEW.answer <> '' AND NEW.state IN ENDED BEGIN
        INSERT OR REPLACE INTO conch_search (rowid, words) VALUES (NEW.id * 2 + 1, NEW.answer);
    END""",
    """CREATE TRIGGER conch_search_again AFTER UPDATE OF state ON conch_turn
        WHEN OLD.state IN ENDED AND NEW.state NOT IN ENDED BEGIN
        DELETE FROM conch_search WHERE rowid = OLD.id * 2 + 1;
    END""",
    """CREATE TRIGGER conch_search_gone AFTER DELETE ON conch_turn BEGIN
        DELETE FROM conch_search WHERE rowid IN (OLD.id * 2, OLD.id * 2 + 1);
    END""",
    "INSERT INTO conch_search (rowid, words) SELECT id * 2, text FROM conch_turn",
    """INSERT INTO conch_search (rowid, words)
        SELECT id * 2 + 1, answer FROM conch_turn WHERE answer <> '' AND state IN ENDED""",
]

# A tsvector holds less than 1 MiB of words: of a longer text the beginning is found.
POSTGRESQL = [
    "CREATE TABLE conch_search (id bigint PRIMARY KEY, words tsvector NOT NULL)",
    "CREATE INDEX conch_search_words ON conch_search USING gin (words)",
    """CREATE FUNCTION conch_search_keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP = 'TRUNCATE' THEN
            TRUNCATE conch_search;
        ELSIF TG_OP = 'DELETE' THEN
            DELETE FROM conch_search WHERE id IN (OLD.id * 2, OLD.id * 2 + 1);
        ELSE
            IF TG_OP = 'INSERT' THEN
                INSERT INTO conch_search VALUES (NEW.id * 2, to_tsvector('simple', left(NEW.text, 100000)));
            END IF;
            IF NEW.state NOT IN ENDED THEN
                DELETE FROM conch_search WHERE id = NEW.id * 2 + 1;
            ELSIF NEW.answer <> '' THEN
                INSERT INTO conch_search VALUES (NEW.id * 2 + 1, to_tsvector('simple', left(NEW.answer, 100000)))
                    ON CONFLICT (id) DO UPDATE SET words = EXCLUDED.words;
            END IF;
        END IF;
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER conch_search_said AFTER INSERT ON conch_turn
        FOR EACH ROW EXECUTE FUNCTION conch_search_keep()""",
    """CREATE TRIGGER conch_search_ended AFTER UPDATE OF state ON conch_turn
        FOR EACH ROW WHEN (OLD.state IN ENDED OR NEW.state IN ENDED) EXECUTE FUNCTION conch_search_keep()""",
    """CREATE TRIGGER conch_search_gone AFTER DELETE ON conch_turn
        FOR EACH ROW EXECUTE FUNCTION conch_search_keep()""",
    """CREATE TRIGGER conch_search_emptied AFTER TRUNCATE ON conch_turn
        FOR EACH STATEMENT EXECUTE FUNCTION conch_search_keep()""",
    "INSERT INTO conch_search SELECT id * 2, to_tsvector('simple', left(text, 100000)) FROM conch_turn",
    """INSERT INTO conch_search SELECT id * 2 + 1, to_tsvector('simple', left(answer, 100000))
        FROM conch_turn WHERE answer <> '' AND state IN ENDED""",
]

UNDO = {
    "sqlite": [
        *(f"DROP TRIGGER conch_search_{name}" for name in ("said", "ended", "again", "gone")),
        "DROP TABLE conch_search",
    ],
    "postgresql": [
        *(f"DROP TRIGGER conch_search_{name} ON conch_turn" for name in ("said", "ended", "gone", "emptied")),
        "DROP FUNCTION conch_search_keep()",
        "DROP TABLE conch_search",
    ],
}


def make(_apps: Any, editor: Any) -> None:
    """Make the index of this kind of database, with what is there already."""
    for statement in {"sqlite": SQLITE, "postgresql": POSTGRESQL}[editor.connection.vendor]:
        editor.execute(statement.replace("ENDED", ENDS), None)


def unmake(_apps: Any, editor: Any) -> None:
    """Take the index away."""
    for statement in UNDO[editor.connection.vendor]:
        editor.execute(statement, None)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conch", "0005_window_samples")]

    operations: ClassVar = [
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("temporary", True)), fields=["created_at"], name="conversation_temporary"
            ),
        ),
        migrations.RunPython(make, unmake),
    ]
