"""Runs a comparison within its share of the time, and keeps the pairs of every row."""

import time

from . import pytorch
from .comparisons import ByItself, InTurns, SHARE, Shares, TIME
from .processes import Command, Failure, TurnTaker, run_once, under_mpirun

ANSWER_SECONDS = 120  # longest turn


class Context:
    """Settings of all comparisons: the folder of programs, the number of pairs, the peers."""

    def __init__(self, programs, folder, pairs, environment, torches, text=None):
        self.programs, self.folder, self.pairs = programs, folder, pairs
        self.environment, self.torches, self.text = environment, torches, text

    def command(self, comparison, **values):
        program = self.programs / comparison.program
        if not program.exists():
            raise Failure(f"{program} is missing: build it with cmake --build --preset release")
        values = {"pairs": self.pairs, "folder": self.folder, **values}
        arguments = [argument.format(**values) for argument in comparison.arguments]
        return Command(under_mpirun(comparison.ranks, [str(program), *arguments]), self.environment)


def row_result(name, theirs, ratio, pairs, unit="s"):
    return {"name": name, "theirs": theirs, "ratio": ratio, "pairs": pairs, "unit": unit}


def ratios_of(row):
    """The ratio of each pair, of the kind that the row names."""
    if row["ratio"] == TIME:
        return [ours / theirs for ours, theirs in row["pairs"]]
    return [theirs / ours for ours, theirs in row["pairs"]]


def take_rounds(asks, rounds, deadline):
    """Asks for all of `asks`, pairs of (program, name), in every round; every second round backwards, so that no side is always
    first. Returns the values of each; the first round is a warm-up and not kept. Leaves out what this machine can't measure."""
    asks = [ask for ask in asks if ask[0].ask(ask[1], ANSWER_SECONDS) is not None]
    values = {ask: [] for ask in asks}
    longest = 0.0
    for index in range(rounds):
        begin = time.monotonic()
        if begin + longest > deadline:
            break
        for ask in asks if index % 2 == 0 else reversed(asks):
            values[ask].append(ask[0].ask(ask[1], ANSWER_SECONDS))
        longest = max(longest, time.monotonic() - begin)
    return values


def run_in_turns(comparison: InTurns, context, deadline):
    result = {"rows": [], "notes": [], "trials": [], "memory": {}}
    peer, peer_label = None, ""
    begin = time.monotonic()
    ours = TurnTaker(comparison.program, [context.command(comparison)], comparison.ranks)
    try:
        if comparison.memory:
            result["memory"]["ours"] = ours.ask("memory", ANSWER_SECONDS)  # after its first steps, before its floor
        if comparison.peer and context.torches:
            request = next(row.theirs_asked for row in comparison.rows if row.of_peer)
            try:  # the trial may take up to two thirds of the time, since compilers are slow
                peer, peer_label, result["trials"] = pytorch.fastest(context.torches, comparison.peer, request,
                                                                     context.environment, begin + (deadline - begin) * 2 / 3)
            except Failure as failure:
                result["notes"].append(failure.what)
                result["failure"] = {"what": failure.what, "output": failure.output}
        if comparison.memory and peer:
            result["memory"].update(theirs=peer.ask("memory", ANSWER_SECONDS), peer=peer_label)
        rows = [row for row in comparison.rows if peer or not row.of_peer]
        asks_of = {row: ((ours, row.ours_asked), (peer if row.of_peer else ours, row.theirs_asked)) for row in rows}
        values = take_rounds(list(dict.fromkeys(ask for asks in asks_of.values() for ask in asks)), context.pairs, deadline)
        for row, (own, other) in asks_of.items():
            lacking = [program.name for program, name in (own, other) if (program, name) not in values]
            if lacking:
                result["notes"].append(f"{row.name}: {lacking[0]} cannot measure that on this processor")
                continue
            pairs = [list(pair) for pair in zip(values[own], values[other])]
            if pairs:
                result["rows"].append(row_result(row.name, peer_label if row.of_peer else row.theirs, row.ratio, pairs))
            else:
                result["notes"].append(f"{row.name}: skipped, the time was over before a pair was measured")
    finally:
        ours.close()
        if peer:
            peer.close()
    return result


def run_by_itself(comparison: ByItself, context, deadline):
    run = run_once(context.command(comparison), max(comparison.least_seconds, deadline - time.monotonic()))
    rows = [row_result(name, theirs, ratio, [list(pair) for pair in zip(ours, others)])
            for name, theirs, ours, others, ratio in comparison.rows_of(run.figures)]
    return {"rows": rows, "notes": [], "trials": [], "memory": {}}


def run_shares(comparison: Shares, context, deadline):
    """Each run measures the ceilings and all operations, so a run gives a pair for each."""
    runs = []
    while len(runs) < comparison.runs:
        begin = time.monotonic()
        if runs and begin + runs[-1].seconds > deadline:
            break
        runs.append(run_once(context.command(comparison), max(comparison.least_seconds, deadline - begin)))
    figures = [run.figures for run in runs]
    rows = []
    for name, first in figures[0]["operations"].items():
        own = [run["operations"][name] for run in figures]
        theirs = "copy bandwidth" if first["of"] == "copy" else "fused multiply-adds in registers"
        rows.append(row_result(name, theirs, SHARE, [[one["seconds"], one["seconds"] * one["share"]] for one in own]))
    ceilings = {key: [run[key] for run in figures] for key in ("copy_bytes_per_second", "fma_per_second")}
    return {"rows": rows, "notes": [], "trials": [], "memory": {}, "ceilings": ceilings}
