"""The median of ratios, each of one pair of measurements, with an interval that assumes no distribution."""

import dataclasses
import math
import statistics
from typing import List, Optional

SLOWER, FASTER = 1.02, 0.98  # ratios of time beyond which the verdict is slower or faster
FOR_VERDICT = 15  # the least pairs for a verdict


@dataclasses.dataclass
class Interval:
    median: float
    low: Optional[float]  # None where there are too few pairs
    high: Optional[float]
    pairs: int
    coverage: Optional[float]  # probability that the interval holds the true median


def rank_of_bound(count):
    """The k of the interval from the k-th smallest to the k-th largest of `count`, and the probability that it holds the
    median; (0, 0) where no such interval reaches 95 %. Each value lies below the median with probability 1/2, so their
    number is binomial: with 15 pairs the 4th and the 12th, 96.5 %."""
    below = 0.0
    best = (0, 0.0)
    for k in range(1, count // 2 + 1):
        below += math.comb(count, k - 1) / 2**count
        if 1 - 2 * below < 0.95:
            break
        best = (k, 1 - 2 * below)
    return best


def interval_of(values: List[float]) -> Interval:
    ordered = sorted(values)
    k, coverage = rank_of_bound(len(ordered))
    median = statistics.median(ordered)
    if k == 0:
        return Interval(median, None, None, len(ordered), None)
    return Interval(median, ordered[k - 1], ordered[-k], len(ordered), coverage)


def verdict(interval: Interval) -> str:
    """For ratios of time, ours / theirs: slower, faster, same or unclear."""
    if interval.low is None or interval.pairs < FOR_VERDICT:
        return "unclear"
    if interval.low > SLOWER:
        return "slower"
    if interval.high < FASTER:
        return "faster"
    if interval.low >= FASTER and interval.high <= SLOWER:
        return "same"
    return "unclear"


def more_pairs(interval: Interval) -> Optional[int]:
    """About how many more pairs would decide an unclear interval: its width falls with the square root of their number.
    None: the median is so near a bound that no number of pairs is likely to decide."""
    if interval.low is None or interval.pairs < FOR_VERDICT:
        return FOR_VERDICT - interval.pairs
    below, above = interval.median - interval.low, interval.high - interval.median
    if interval.median > SLOWER:
        width, room = below, interval.median - SLOWER
    elif interval.median < FASTER:
        width, room = above, FASTER - interval.median
    else:
        needed = [(below, interval.median - FASTER), (above, SLOWER - interval.median)]
        width, room = max(needed, key=lambda side: side[0] / max(side[1], 1e-9))
    if room <= 0 or width / room > 6:
        return None
    return max(1, math.ceil(interval.pairs * ((width / room) ** 2 - 1)))
