"""What is kept of a tool's schema: only what every provider takes, or one tool would spoil every message of a chat."""

import json

import mcp_types
import pytest

from conch.tools.listing import kept_of


def listed(schema):
    """What is kept of a tool with that schema, and how many were left out."""
    found = kept_of([mcp_types.Tool(name="read", input_schema=schema)])
    return [tool["schema"] for tool in found.tools], found.left_out


@pytest.mark.parametrize("schema", [{}, {"type": "string"}, {"type": ["object", "null"]}, {"type": None}])
def test_arguments_are_an_object_whatever_the_server_says(schema):
    assert listed(schema) == ([{"type": "object"}], 0)


def test_numbers_that_json_has_not_are_left_out():
    kept, _ = listed({"type": "object", "default": float("nan"), "examples": [float("inf"), 1.5]})

    assert json.loads(json.dumps(kept, allow_nan=False)) == [
        {"type": "object", "default": None, "examples": [None, 1.5]}
    ]


def test_a_schema_without_bottom_is_left_out():
    deep = {}
    for _ in range(300):
        deep = {"properties": deep}

    assert listed({"type": "object", "properties": deep}) == ([], 1)
