"""A server that means no good, by hand, in lines over stdio: `python -m tests.tools.servers.hostile HOW`."""

import json
import os
import sys
import time

SCHEMA = {"type": "object", "properties": {}}
ODD = [
    "<script>alert(1)</script>",
    "sp ace",
    "a\u202egnp.exe",
    "x" * 128,
    "x" * 129,
    "",
    "dot.ted",
    "dot_ted",
]


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def one(name, description="A tool."):
    return {"name": name, "description": description, "inputSchema": SCHEMA}


def endless(_cursor):
    return {"tools": [one(f"tool{time.monotonic_ns()}")], "nextCursor": str(time.monotonic_ns())}


def more(cursor):
    start = int(cursor or 0)
    return {"tools": [one(f"tool-{n}") for n in range(start, start + 600)], "nextCursor": str(start + 600)}


LISTS = {
    "endless": endless,
    "more": more,
    "thousand": lambda _: {"tools": [one(f"tool-{number:04}") for number in range(1000)]},
    "odd": lambda _: {"tools": [*map(one, ODD), one("twice", "first"), one("twice", "second")]},
    "words": lambda _: {"tools": [one("say", "<img src=x onerror=alert(1)> \u202eesrever\0 \ud83d end " + "y" * 9000)]},
    "schema": lambda _: {
        "tools": [one("plain"), {"name": "long", "inputSchema": {"type": "object", "x": "y" * 30_000}}]
    },
}


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def endless_line():
    while True:
        sys.stdout.write("y" * 65536)


def dies():
    sys.stderr.write(f"out of luck, {os.environ.get('TOKEN', '')}\n")
    sys.stderr.flush()
    os._exit(3)


def log():
    sys.stderr.write("logged\n" * 500_000)
    sys.stderr.flush()
    return text("nothing")


def flood():
    for number in range(20_000):
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": number}})
    asked = {"messages": [], "maxTokens": 9}
    say({"jsonrpc": "2.0", "id": 99, "method": "sampling/createMessage", "params": asked})
    return text("nothing")


def notices():
    """Say again and again that the list is another one; how often it was asked for so far."""
    for _ in range(20_000):
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    return text(str(len(asked_for)))


def restless(_cursor):
    """A list that is said to be another one each time that it is read."""
    say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    return {"tools": [one("run")]}


asked_for = []
LISTS["restless"] = restless
CALLS = {
    "notices": notices,
    "huge": lambda: text("y" * 3_000_000),
    "endless-line": endless_line,
    "hang": lambda: time.sleep(3600),
    "dies": dies,
    "shape": lambda: {"content": "nothing of the kind"},
    "surrogates": lambda: text("a\ud83dz\0!"),
    "picture": lambda: {"content": [{"type": "image", "data": "aGVsbG8=" * 300, "mimeType": "image/png"}]},
    "flood": flood,
    "log": log,
}


def answer(how, message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        who = {"name": "hostile", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": who}
    if method == "tools/list":
        asked_for.append(message)
        return LISTS[how](params.get("cursor")) if how in LISTS else {"tools": [one("run")]}
    if method == "tools/call":
        return CALLS[how]() if how in CALLS else text("nothing")
    return None


def main(how):
    while how == "rubbish":
        sys.stdout.write("hello hello hello\n")
    if how == "deaf":
        time.sleep(3600)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        said = answer(how, message)
        if said is None:
            say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        else:
            say({"jsonrpc": "2.0", "id": message["id"], "result": said})


if __name__ == "__main__":
    main(sys.argv[1])
