"""A small reverse proxy on the loopback address: connections go to the backends in turn, past those that are gone."""

import asyncio
import contextlib
import threading


class Proxy:
    """Bytes between whoever connects and one of `backends`, (host, port) each. With none of them it hangs up."""

    def __init__(self, *backends):
        self.backends = list(backends)
        self.port = 0
        self._turn = 0
        self._open = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def use(self, *addresses):
        """The backends from now on, as "http://host:port"; connections that are open stay."""
        split = [address.rpartition("/")[2].split(":") for address in addresses]
        self.backends = [(host, int(port)) for host, port in split]

    def hang_up(self):
        """Break every connection that is open."""
        self._loop.call_soon_threadsafe(lambda: [writer.transport.abort() for writer in list(self._open)])

    def end(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        open_still = asyncio.all_tasks(self._loop)
        for task in open_still:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*open_still, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader, writer):
        backend = await self._backend()
        if backend is None:
            writer.close()
            return
        there, to_it = backend
        self._open |= {writer, to_it}
        try:
            await asyncio.gather(_pass_on(reader, to_it), _pass_on(there, writer))
        finally:
            self._open -= {writer, to_it}

    async def _backend(self):
        for _ in range(len(self.backends)):
            self._turn += 1
            host, port = self.backends[self._turn % len(self.backends)]
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(host, port)
        return None


async def _pass_on(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()
