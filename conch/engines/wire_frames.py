"""Server-Sent Events out of bytes that arrive in any pieces (STR-09), bounded in line, event and stream.

Fed by hand instead of by the SDKs' decoders: those bound nothing, drop events without a name (Anthropic's) or hide the
end of the stream from us (OpenAI's), and a provider must be able to fill neither our memory nor an answer.
"""

from dataclasses import dataclass

from conch.engines.base import EngineFault

# The longest event is a whole answer repeated at its end; the longest stream is one of these for every few tokens.
LONGEST_EVENT = 8 * 1024 * 1024
LONGEST_STREAM = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Frame:
    """One event: its name ("" where none was sent) and its data."""

    name: str
    data: str


class FrameReader:
    """Turns bytes into frames. Comments and blank lines are signs of life only (LIM-16); a cut frame is none."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._name = ""
        self._data: list[str] = []
        self._held = 0
        self._seen = 0

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes. Raises EngineFault past a bound."""
        self._seen += len(chunk)
        self._held += len(chunk)
        if self._held > LONGEST_EVENT or self._seen > LONGEST_STREAM:
            raise EngineFault("the answer is longer than any answer can be", cut=True)
        self._pieces.append(chunk)
        if b"\n" not in chunk and b"\r" not in chunk:
            return []
        lines = b"".join(self._pieces).splitlines(keepends=True)
        # A line that ends in a bare CR may still get its LF with the next chunk.
        self._pieces = [] if lines[-1].endswith(b"\n") else [lines.pop()]
        found = [frame for line in lines if (frame := self._line(line.rstrip(b"\r\n")))]
        self._held = sum(map(len, self._pieces)) + sum(map(len, self._data))
        return found

    def _line(self, line: bytes) -> Frame | None:
        if not line:
            return self._end()
        field, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value.decode("utf-8", "replace"))
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        return None

    def _end(self) -> Frame | None:
        frame = Frame(self._name, "\n".join(self._data)) if self._data else None
        self._name, self._data = "", []
        return frame
