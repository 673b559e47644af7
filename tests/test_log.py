"""A log never holds a key (doors.md)."""

import logging

import pytest

from conch.log import Scrubbed, scrubbed


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("Forbidden: /signin/YUNrX8DGZGmZNo-wJ6d_sy1uvkTbj4c-", "Forbidden: /signin/…"),
        ("401 for sk-ant-api03-abcdefghijk: wrong", "401 for sk-…: wrong"),
        ("token conch_FjvQoMLgsXNK6QGplZjo5uLXDp", "token conch_…"),
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer …"),
        ('{"api_key": "abcdefgh", "model": "m"}', '{"api_key": "…", "model": "m"}'),
        ("x-api-key=abcdefghijk&model=m", "x-api-key=…"),
        ("GET /signed-in?state=0123456789&code=abcdef&iss=x", "GET /signed-in?state=…&code=…&iss=x"),
        ("id eyJhbGciOiJub25lIn0.eyJlbWFpbCI6ImEifQ.c2ln", "id eyJ…"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic …"),
        ("{'authorization': 'token ghp_0123456789abcdef'}", "{'authorization': 'token ghp_…'}"),
        ("403 for AIzaSyA-0123456789abcdef", "403 for AIza…"),
        ("no route to postgres://conch:hunter2@db.example/conch", "no route to postgres://conch:…@db.example/conch"),
        ("from http://127.0.0.1:8765/c/1 to a@b.example", "from http://127.0.0.1:8765/c/1 to a@b.example"),
        ("turn 12 of openai: task-skills at /signin", "turn 12 of openai: task-skills at /signin"),
    ],
)
def test_secrets_are_taken_out_and_the_rest_stays(written, kept):
    assert scrubbed(written) == kept


def test_a_traceback_is_cleaned_too():
    error = ValueError("refused sk-made-up-0123456789")
    record = logging.LogRecord(
        "conch", logging.ERROR, "", 1, "it %s", ("failed",), (type(error), error, error.__traceback__)
    )

    line = Scrubbed("%(levelname)s %(message)s").format(record)

    assert line.startswith("ERROR it failed")
    assert "ValueError: refused sk-…" in line
    assert "0123456789" not in line


def test_the_products_own_log_goes_through_it(settings):
    assert settings.LOGGING["formatters"]["text"]["()"] == "conch.log.Scrubbed"
