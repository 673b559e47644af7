"""Bodies of calls: strict JSON, cleaned of what no text may hold before anything looks at it (doors.md)."""

import json
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser
from ninja.types import DictStrAny

from conch.turns.accept import clean


class CleanJson(Parser):
    """JSON with lone surrogates as U+FFFD and NUL left out, also where they were written as escapes."""

    def parse_body(self, request: HttpRequest) -> DictStrAny:
        """The body. Raises ValueError where it is no JSON, which the caller answers with 400."""
        try:
            text = request.body.decode("utf-8", "surrogatepass")
            parsed: DictStrAny = cleaned(json.loads(text, parse_constant=_no_number))
        except RecursionError as error:
            raise ValueError("the JSON is nested too deeply") from error
        return parsed

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> DictStrAny:
        """The query, cleaned too."""
        query: DictStrAny = cleaned(super().parse_querydict(data, list_fields, request))
        return query


def cleaned(value: Any) -> Any:
    """The same value with every text in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    if isinstance(value, dict):
        return {clean(name): cleaned(one) for name, one in value.items()}
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
