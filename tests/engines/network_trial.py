"""A turn of each program in a network of its own, told as one line of JSON: what was asked, of whom, by what name.

Run by test_programs_network in namespaces of its own: only the loopback interface is there, and the one name server is
this process, which answers nothing and writes every name down. Without the dead proxy of clis.md 4: nothing strays.
"""

import asyncio
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

CONTROL = "control.example"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def raise_loopback():
    """Up with the only interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        name = b"lo".ljust(16, b"\0")
        (flags,) = struct.unpack("16xh", fcntl.ioctl(probe, SIOCGIFFLAGS, name + bytes(2)))
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP))


def lead_here(folder, host):
    """That name is this computer; there is no other."""
    for name, text in (("hosts", f"127.0.0.1 localhost {host}\n"), ("resolv.conf", "")):
        (folder / name).write_text(text)
        subprocess.run(["mount", "--bind", str(folder / name), f"/etc/{name}"], check=True)


def be_the_name_server(folder, names):
    """Every look-up comes here and gets no answer."""
    conf = folder / "resolv.conf"
    conf.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    subprocess.run(["mount", "--bind", str(conf), "/etc/resolv.conf"], check=True)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))

    def listen():
        while True:
            packet, asker = server.recvfrom(4096)
            names.append(name_in(packet))
            server.sendto(packet[:2] + b"\x81\x83" + packet[4:6] + bytes(6) + packet[12:], asker)  # no such name

    threading.Thread(target=listen, daemon=True).start()


def name_in(packet):
    """The name that a look-up asks for."""
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode("ascii", "replace"))
        at += packet[at] + 1
    return ".".join(labels)


async def turns(simulator, folder):
    """An answer, a limit and a refused sign-in, by each program."""
    from conch.engines.base import Access, EngineError, Message, Request
    from conch.engines.claude_code import ClaudeCode
    from conch.engines.codex_cli import CodexCli

    came = []
    people = [
        (ClaudeCode(), simulator.claude("bob@home.example", folder / "bob"), "claude-code", "sonnet", "session"),
        (CodexCli(), simulator.codex("ada@work.example", folder / "ada"), "codex-cli", "gpt-5.5", "usage_limit"),
    ]
    for engine, key, name, model, limit in people:
        key.replies("Here.").refuses(limit)
        access = Access(name, simulator.base_urls[name], home=key.home)
        request = Request(model, (Message("user", "Hi"),))
        await engine.identify(access)
        await engine.read_room(access)
        for signed_out in (False, False, True):
            key.signed_out = signed_out
            try:
                came += [type(event).__name__ async for event in engine.reply(access, request)][-1:]
            except EngineError as error:
                came.append(type(error).__name__)
        await engine.close()
    return came


def main():
    folder = Path(sys.argv[1])
    raise_loopback()
    names = []
    be_the_name_server(folder, names)
    from tests.simulator.simulator import Simulator

    with Simulator() as simulator:
        os.environ["CODEX_REFRESH_TOKEN_URL_OVERRIDE"] = f"{simulator.url}/oauth/token"
        came = asyncio.run(turns(simulator, folder))
        hosts = sorted({seen.headers.get("host", "") for seen in simulator.all_requests()})
        with suppress(OSError):
            socket.getaddrinfo(CONTROL, 443)  # so that silence means something
        sys.stdout.write(json.dumps({"came": came, "names": names, "hosts": hosts, "port": simulator.port}))


if __name__ == "__main__":
    main()
