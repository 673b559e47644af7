"""The OpenAPI document as programs need it: sign-in, shapes of answers, problem documents."""

from typing import Any

from conch.api.problems import MEDIA_TYPE
from conch.api.shapes import ANSWERS, SCHEMAS

SIGN_IN = {
    "token": {"type": "http", "scheme": "bearer", "description": "`manage.py token` makes one."},
    "session": {"type": "apiKey", "in": "cookie", "name": "conch_session", "description": "With X-CSRFToken."},
}
PROBLEM = {
    "description": "What went wrong, as a problem document (RFC 9457)",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def complete(document: Any) -> None:
    """Add to the document that the code gives what its signatures don't say."""
    components = document.setdefault("components", {})
    components.setdefault("schemas", {}).update(SCHEMAS)
    components["securitySchemes"] = SIGN_IN
    document["security"] = [{"token": []}, {"session": []}]
    prefix = "/api"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            answers = ANSWERS[method.upper(), path.removeprefix(prefix)]
            operation["responses"] = {str(status): shown for status, shown in answers.items()} | {"4XX": PROBLEM}
            operation.pop("security", None)
