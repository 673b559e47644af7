"""Ids in addresses: numbers that a row can have. A larger one is an address that isn't there, not a fault."""

from django.urls import register_converter

LARGEST = 10**18 - 1  # a database's 64 bits hold every number of 18 digits


class RowId:
    """`<id:name>` in an address."""

    regex = "[0-9]{1,18}"

    def to_python(self, value: str) -> int:
        """The number."""
        return int(value)

    def to_url(self, value: int) -> str:
        """As written in an address."""
        return str(value)


register_converter(RowId, "id")
