"""Requests of somebody who has signed in: each carries the token, renewed before it runs out or once it is refused."""

import httpx2
from django.utils import timezone

from conch.tools import renewal
from conch.tools.grants import Grant
from conch.tools.launches import Launch


class Signed(httpx2.AsyncBaseTransport):
    """What goes to a server that the person has signed in to.

    A request that was refused for its token did nothing there, so it goes out once more with a new one. Raises
    ToolTrouble where there is none to be had.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, launch: Launch, grant: Grant) -> None:
        self._inner, self._launch, self._grant = inner, launch, grant

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to it with a token."""
        if request.method == "DELETE":  # a goodbye: not worth a new token
            return await self._sent(request)
        if self._grant.has_run_out(timezone.now()):
            await self._renew(self._grant)
        used = self._grant
        response = await self._sent(request)
        if response.status_code != 401:
            return response
        await response.aclose()
        await self._renew(used)
        return await self._sent(request)

    async def _renew(self, refused: Grant) -> None:
        """A newer token than that; of several requests refused at once the first one asks for it."""
        self._grant = await renewal.renewed(self._launch, refused)

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Authorization"] = f"Bearer {self._grant.access_token}"
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()
