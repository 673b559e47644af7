"""Renewing a ChatGPT sign-in: the Codex program does it, under a lock, and nobody else (design.md, Engines).

Refresh tokens work once. Two programs that renew one `auth.json` sign each other out, so the program renews its own,
one at a time across all processes of Conch, and the file is read again. Blocking; call it in a thread, which a
cancelled turn leaves to its end: a renewal is never broken off half-way.
"""

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from conch.configuration import data_folder
from conch.engines import programs
from conch.engines.base import SignedOut
from conch.engines.codex_home import Tokens, read_tokens
from conch.engines.local_server import held

RENEWED_WITHIN = 45.0  # seconds
LONGEST_LINE = 1024 * 1024
SWITCHES = ("analytics.enabled=false", "check_for_update_on_startup=false", 'cli_auth_credentials_store="file"')
HELLO = {
    "id": 1,
    "method": "initialize",
    "params": {"clientInfo": {"name": "conch", "title": "Conch", "version": "0"}},
}
READY = {"method": "initialized"}
RENEW = {"id": 2, "method": "account/read", "params": {"refreshToken": True}}


def find_program() -> str | None:
    """The Codex program: the person's own, else the one of the installed package."""
    return programs.look(programs.CODEX).path or None


def renew(folder: Path, refused: Tokens, base_url: str = "") -> Tokens:
    """A sign-in newer than the refused one. Raises SignedOut where there is none to be had.

    `base_url`: the address, with /backend-api, that the account is asked at, where it isn't ChatGPT's own.
    """
    with held(_lock_of(folder), fcntl.LOCK_EX) as lock:
        tokens = read_tokens(folder)
        if tokens.access_token != refused.access_token:
            return tokens  # another process was faster, or the person used the program
        program = find_program()
        if program is None:
            why = programs.look(programs.CODEX).why
            raise SignedOut(f"The sign-in has run out. {why}".strip(), status=401, missing_program=True)
        assert lock is not None
        _let_it_renew(program, folder, base_url, lock)
        tokens = read_tokens(folder)
    if tokens.access_token == refused.access_token:
        raise SignedOut("the sign-in has run out and couldn't be renewed", status=401)
    return tokens


def _lock_of(folder: Path) -> Path:
    locks = data_folder() / "locks"
    locks.mkdir(mode=0o700, exist_ok=True)
    return locks / f"codex-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"


def _let_it_renew(program: str, folder: Path, base_url: str, lock: IO[str]) -> None:
    """Ask the program for the account with a fresh token; whatever it answers, the file says whether it is there.

    The program holds the lock too: where this process is killed meanwhile, nobody begins before the program has ended.
    """
    switches = [*SWITCHES, *([f"chatgpt_base_url={json.dumps(base_url)}"] if base_url else [])]
    variables = programs.given("CODEX_CA_CERTIFICATE", "CODEX_REFRESH_TOKEN_URL_OVERRIDE")
    environment = programs.scrubbed(program, CODEX_HOME=str(folder), **variables)
    with tempfile.TemporaryDirectory(prefix="conch-codex-") as empty:
        try:
            process = subprocess.Popen(  # noqa: S603 - the program that the person installed
                [program, *(word for switch in switches for word in ("-c", switch)), "app-server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=empty,
                env=environment,
                start_new_session=True,
                pass_fds=(lock.fileno(),),
            )
        except OSError as error:
            raise SignedOut("the sign-in has run out, and the Codex program doesn't start", status=401) from error
        late = threading.Timer(RENEWED_WITHIN, _end, (process,))
        late.start()
        try:
            _converse(process)
        finally:
            late.cancel()
            _end(process)


def _converse(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError, ValueError):  # it ended: the file says what became of it
        _send(process.stdin, HELLO)
        if _answered(process.stdout, 1):
            _send(process.stdin, READY)
            _send(process.stdin, RENEW)
            _answered(process.stdout, 2)


def _send(pipe: IO[bytes], message: dict[str, Any]) -> None:
    pipe.write(json.dumps(message).encode() + b"\n")
    pipe.flush()


def _answered(pipe: IO[bytes], message_id: int) -> bool:
    while line := pipe.readline(LONGEST_LINE):
        with suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict) and message.get("id") == message_id:
                return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            if pipe is not None and pipe is not process.stdout:
                pipe.close()
    try:
        process.wait(timeout=3)  # closing its input ends it
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # whatever it started would keep the lock
    if process.stdout is not None:
        process.stdout.close()
