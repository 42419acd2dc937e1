"""The functions of benchmarks/functions in PyTorch, without gradients. Run by benchmarks/report --only "functions"."""

import argparse
import time

import torch
from turns import take_turns

LEAST_SECONDS = 0.002  # that a turn takes
SIZES = (4 << 10, 256 << 10, 16 << 20)


def values(*shape):
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 37 % 1000).float() / 250 - 1.999).reshape(shape)


def indices(below, *shape):
    return (torch.arange(torch.Size(shape).numel()) * 7919 % below).reshape(shape)


def functions_of(size):
    """Functions with the same operands as in benchmarks/functions/cases.cpp."""
    count = size // 4
    rows = 1 << (count.bit_length() // 2)
    width = count // rows
    x, y = values(rows, width), values(rows, width)
    row, column, cube = values(width), values(rows, 1), values(rows // 4, 4, width)
    return {
        "add": (lambda a, b: a + b, x, y),
        "add_row": (lambda a, b: a + b, x, row),
        "add_column": (lambda a, b: a + b, x, column),
        "exp": (torch.exp, x),
        "where": (lambda a, b: torch.where(a > 0, a, b), x, y),
        "expression": (lambda a, b: a * torch.sigmoid(a) * b + torch.exp(-b), x, y),
        "sum_first": (lambda a: a.sum(0), x),
        "sum_middle": (lambda a: a.sum(1), cube),
        "sum_last": (lambda a: a.sum(-1), x),
        "max_first": (lambda a: a.amax(0), x),
        "max_last": (lambda a: a.amax(-1), x),
        "var_last": (lambda a: a.var(-1), x),
        "cumsum": (lambda a: a.cumsum(-1), x),
        "cat": (lambda a, b: torch.cat([a, b], -1), x, y),
        "permute": (lambda a: a.permute(1, 0, 2).contiguous(), cube),
        "transpose": (lambda a: a.t().contiguous(), x),
        "flip": (lambda a: a.flip(1), x),
        "gather": (lambda a, index: a.gather(-1, index), x, indices(width, rows, width)),
        "index_select": (lambda a, index: a.index_select(0, index), x, indices(rows, rows)),
    }


class Timed:
    """Mean seconds of a call, over enough calls for a turn of LEAST_SECONDS."""

    def __init__(self, function, operands):
        self.function, self.operands, self.calls = function, operands, 0

    def seconds(self, calls):
        start = time.perf_counter()
        for _ in range(calls):
            self.function(*self.operands)
        return (time.perf_counter() - start) / calls

    def __call__(self):
        if self.calls == 0:
            self.seconds(2)  # compiles
            self.calls = max(1, int(LEAST_SECONDS / self.seconds(1)))
        return self.seconds(self.calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--turns", required=True, help="a folder: take turns with other programs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    measures = {}
    for size in SIZES:
        for name, (function, *operands) in functions_of(size).items():
            form = torch.compile(function, dynamic=False) if options.compile else function
            measures[f"{name}.{size}"] = Timed(form, operands)
    with torch.inference_mode():
        take_turns(options.turns, measures)


if __name__ == "__main__":
    main()
