"""What the measurements share: a raw streaming request, and figures in words."""

import asyncio
import json
import os
import time
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def spread(values):
    """Seconds as milliseconds: the middle and the slowest but one in twenty."""
    return f"p50 {median(values) * 1e3:6.1f}  p95 {percentile(values, 0.95) * 1e3:6.1f} ms"


class Cut(Exception):
    """The answer ended without what was waited for."""


async def streamed(address, body, headers, sign):
    """One streaming POST over a connection of its own: seconds to `sign` (the first text) and to the end."""
    start = time.perf_counter()
    first, seen = None, bytearray()
    async for piece in pieces(address, body, headers):
        seen += piece
        if first is None and sign in seen:
            first = time.perf_counter() - start
    if first is None:
        raise Cut(bytes(seen[-500:]))
    return first, time.perf_counter() - start


async def pieces(address, body, headers):
    """What a POST is answered with, as it comes, its head included."""
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    payload = json.dumps(body).encode()
    head = {"Host": parts.netloc, "Content-Type": "application/json", "Content-Length": len(payload), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    writer.write(f"POST {parts.path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode() + payload)
    try:
        while piece := await reader.read(65536):
            yield piece
    finally:
        writer.close()


async def one_by_one(times, ask):
    """Ask so often, one after another; the seconds to the first text of each."""
    return [(await ask())[0] for _ in range(times)]


async def at_once(many, times, ask):
    """Ask `times` often with `many` under way; the rate, and the seconds to the first text of each."""
    gate = asyncio.Semaphore(many)

    async def one():
        async with gate:
            return await ask()

    start = time.perf_counter()
    took = await asyncio.gather(*(one() for _ in range(times)))
    return times / (time.perf_counter() - start), [first for first, _ in took]


class Watched:
    """A process, by what it takes of the machine."""

    def __init__(self, pid):
        self.pid = pid

    @property
    def megabytes(self):
        """Resident now, of it and of its children."""
        return sum(_resident(pid) for pid in (self.pid, *_children(self.pid))) / 1024

    @property
    def megabytes_alone(self):
        """Resident now, of itself."""
        return _resident(self.pid) / 1024

    @property
    def processor_seconds(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def threads_and_files(self):
        return len(list(Path(f"/proc/{self.pid}/task").iterdir())), len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


def _resident(pid):
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
