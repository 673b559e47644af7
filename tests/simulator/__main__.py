"""`python -m tests.simulator [--port 0] [--tls]`: serve, and print the addresses as JSON on one line."""

import argparse
import asyncio
import json

from tests.simulator.simulator import Simulator, event_loop


def announce(simulator: Simulator) -> None:
    told = {"url": simulator.url, "base_urls": simulator.base_urls}
    if simulator.ca_path is not None:
        told |= {"tls_url": simulator.tls_url, "ca": str(simulator.ca_path)}
    print(json.dumps(told), flush=True)  # noqa: T201  this line is the command's answer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--no-bodies", action="store_true", help="keep no bodies of requests: for long loads")
    chosen = parser.parse_args()
    simulator = Simulator(chosen.port, with_tls=chosen.tls)
    simulator.app.records.keeps_bodies = not chosen.no_bodies
    with asyncio.Runner(loop_factory=event_loop) as runner:
        try:
            runner.run(simulator.serve(announce=announce))
        except KeyboardInterrupt:
            simulator.stop()


if __name__ == "__main__":
    main()
