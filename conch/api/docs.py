"""The page of the API: every call, from the OpenAPI document, under the same policy as every other page."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase


class Page(DocsBase):
    """A page of our own: the usual ones bring scripts from elsewhere."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **_kwargs: Any) -> HttpResponse:
        """The calls in the order of doors.md, with what they take and answer."""
        document: Any = api.get_openapi_schema()
        return render(request, "accounts/api.html", {"calls": _calls(document), "about": document["info"]})


def _calls(document: Any) -> list[dict[str, Any]]:
    schemas = document["components"]["schemas"]
    return [
        {
            "method": method.upper(),
            "path": path,
            "summary": operation.get("summary", ""),
            "description": operation.get("description", ""),
            "query": [_parameter(one) for one in operation.get("parameters", []) if one["in"] == "query"],
            "body": _body(operation, schemas),
            "answers": [_answer(status, said) for status, said in operation["responses"].items()],
        }
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def _parameter(given: dict[str, Any]) -> dict[str, str]:
    return {"name": given["name"], "what": given.get("description", "") or given["schema"].get("description", "")}


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    shape = schemas.get(name, {})
    required = shape.get("required", [])
    return [
        {"name": field, "type": _type(facts), "required": field in required}
        for field, facts in shape.get("properties", {}).items()
    ]


def _type(facts: dict[str, Any]) -> str:
    if "anyOf" in facts:
        return " or ".join(dict.fromkeys(_type(one) for one in facts["anyOf"]))
    if "enum" in facts:
        return " or ".join(str(one) for one in facts["enum"])
    return str(facts.get("type") or facts.get("$ref", "").rpartition("/")[2])


def _answer(status: str, said: dict[str, Any]) -> dict[str, str]:
    kinds = ", ".join(said.get("content", {}))
    return {"status": status, "what": said.get("description", ""), "kinds": kinds}
