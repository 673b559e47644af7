"""This computer: what is said of the model here."""

import pytest


def test_without_a_model_it_says_how_to_get_one(signed_in, monkeypatch, tmp_path):
    monkeypatch.setenv("CONCH_DATA", str(tmp_path))

    said = signed_in.get("/settings/computer").content.decode()

    assert "There’s no model on this computer yet." in said
    assert "CONCH_LOCAL_URL" in said
    assert "Try it" not in said


def test_only_its_owner_is_told_what_runs_on_this_machine(visitor):
    said = visitor.get("/settings/computer").content.decode()

    assert "is running" not in said
    assert "Found on this computer" not in said


@pytest.mark.parametrize("text", ["", "x" * 2001])
def test_a_question_that_is_none_is_said_beside_the_field(signed_in, text):
    response = signed_in.post("/settings/computer/try", {"text": text})

    assert response.status_code == 422


def test_trying_it_without_a_model_says_why(signed_in, monkeypatch, tmp_path):
    monkeypatch.setenv("CONCH_DATA", str(tmp_path))

    response = signed_in.post("/settings/computer/try", {"text": "Hello"})

    assert response.status_code == 200
    assert "There’s no model on this computer yet." in response.content.decode()
