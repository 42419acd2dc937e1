"""Divides the time among the comparisons: each gets its part of the time that is left, and unused time goes to the others."""

import time

from .comparisons import ByItself, InTurns, Shares, ToQuality
from .processes import Failure
from .quality import mnist_folder, run_to_quality
from .rounds import run_by_itself, run_in_turns, run_shares

RUN = {InTurns: run_in_turns, ByItself: run_by_itself, Shares: run_shares, ToQuality: run_to_quality}


def reason_to_skip(comparison, share):
    if isinstance(comparison, ToQuality) and comparison.data == "mnist" and not mnist_folder():
        return "MNIST: not found, skipped; TRIREME_DATA names the folder that holds mnist/"
    if share < comparison.least_seconds:
        return (f"skipped: it needs {comparison.least_seconds:.0f} s, its share of the time is {max(share, 0):.0f} s; "
                "raise --minutes")
    return ""


def run_all(comparisons, context, minutes, say):
    """The result of each comparison, in order. The failure of one does not affect the others."""
    end = time.monotonic() + 60 * minutes
    results, interrupted = [], False
    for index, comparison in enumerate(comparisons):
        waiting = sum(other.wanted_seconds for other in comparisons[index:])
        begin = time.monotonic()
        share = (end - begin) * comparison.wanted_seconds / waiting
        result = {"name": comparison.name, "question": comparison.question, "rows": [], "notes": [], "trials": [], "memory": {}}
        why = "interrupted" if interrupted else reason_to_skip(comparison, share)
        if why:
            result["skipped"] = why
        else:
            say(f"{comparison.name} ...", end="")
            try:
                result.update(RUN[type(comparison)](comparison, context, begin + share))
            except Failure as failure:
                result["failure"] = {"what": failure.what, "output": failure.output}
            except KeyboardInterrupt:
                interrupted = True
                result["skipped"] = "interrupted"
        result["seconds"] = time.monotonic() - begin
        results.append(result)
        if "failure" in result:
            say(f" FAILED: {result['failure']['what']}\n{result['failure']['output']}")
        elif "skipped" in result:
            say(f" {result['skipped']}" if not why else f"{comparison.name}: {why}")
        else:
            say(f" {result['seconds']:.0f} s")
    return results, interrupted
