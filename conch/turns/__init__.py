"""One turn: gather, decide, stream, record.

                       ┌───────────────── retry, answer with (any end, waiting, capped) ────────────────┐
                       ▼                                                                                │
    POST ──────────► queued ──── claimed by one atomic update ────► running ──► done | failed | stopped | interrupted
                      ▲ │                                              │
                      │ └──── the route waits, or is capped ───────────┤
                      └──────────── waiting, capped ◄──────────────────┘
                                        │
                                        └──► failed (no room for too long) | stopped (cancelled)

A process that accepted a turn runs it as a task of its own, not of the request; its owner renews the lease. Whoever
finds a lapsed lease ends the turn as interrupted; a queued turn was never sent, and anyone may run it (recovery.py).

Who answers may ask for tools (streaming.py, toolbox.py): their calls run, and it is asked again with what they gave, in
rounds of the same attempt. A call that asks the person lets the turn wait for `tool` (asking.py); each call is a row of
its turn, and never run twice by itself (calls.py).

Ids of events grow by one an event, and by its length for text, over all runs of a turn. So the text needs no rows: what
lies between two events is found again in the turn's answer (events.py).
"""
