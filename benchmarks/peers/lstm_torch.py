"""Forward and backward of torch.nn.LSTM and GRU at the sizes of benchmarks/lstm. Run by compare_lstm."""

import argparse
import json
import time

import torch
from turns import take_turns


def seconds_of_step(module, x):
    start = time.perf_counter()
    module.zero_grad(set_to_none=True)
    x.grad = None
    module(x)[0].sum().backward()
    return time.perf_counter() - start


def median_seconds(module, x, steps):
    seconds = [seconds_of_step(module, x) for _ in range(steps + 1)][1:]
    return sorted(seconds)[len(seconds) // 2]


def main():
    parser = argparse.ArgumentParser()
    for name, value in [("batch", 32), ("time", 64), ("hidden", 512), ("layers", 2), ("threads", 1), ("steps", 9)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json")
    parser.add_argument("--turns", help="a folder: take turns with other programs")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    x = torch.full((options.batch, options.time, options.hidden), 0.1, requires_grad=True)
    sizes = {"input_size": options.hidden, "hidden_size": options.hidden, "num_layers": options.layers, "batch_first": True}
    modules = {"lstm": torch.nn.LSTM(**sizes), "gru": torch.nn.GRU(**sizes)}
    if options.turns:
        take_turns(options.turns, {name: lambda module=module: seconds_of_step(module, x) for name, module in modules.items()})
        return
    figures = {"version": torch.__version__}
    for name, module in modules.items():
        figures[f"{name}_seconds"] = median_seconds(module, x, options.steps)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file)


if __name__ == "__main__":
    main()
