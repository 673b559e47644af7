"""One turn: gather, decide, stream, record."""
