"""How long the first words of answers took in this process: counts by upper bound, as a histogram is read."""

from bisect import bisect_left

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # seconds

_counts = [0] * (len(BOUNDS) + 1)
_sum = 0.0


def first_words(seconds: float) -> None:
    """An answer's first words came so long after its run began."""
    global _sum
    _counts[bisect_left(BOUNDS, seconds)] += 1
    _sum += seconds


def so_far() -> tuple[list[tuple[str, int]], float]:
    """(upper bound, how many took at most that long) for every bound, and the sum of all in seconds."""
    buckets, count = [], 0
    for bound, more in zip([*map(str, BOUNDS), "+Inf"], _counts, strict=True):
        count += more
        buckets.append((bound, count))
    return buckets, _sum
