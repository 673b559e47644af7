"""Starts servers quickly: everything is imported once, and each server is a fork of that, a process like any other.

`python -m tests.soak.nursery`: for every line on stdin one more server; its process id and address come on stdout. What
is left out of `manage.py up` is the import of what is imported already.
"""

import os
import signal
import sys


def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conch.settings")
    import django

    django.setup()
    import uvicorn

    import conch.asgi
    from conch.serving import listen, serve_on

    assert uvicorn, conch.asgi
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are nobody's to bury
    for _ in sys.stdin:
        listening = listen("127.0.0.1", 0)
        child = os.fork()
        if not child:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            serve_on(listening)
            os._exit(0)
        sys.stdout.write(f"{child} http://127.0.0.1:{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        listening.close()


if __name__ == "__main__":
    main()
