"""torch's scaled_dot_product_attention at the sizes of benchmarks/attention. Run by compare_attention."""

import argparse
import json
import time

import torch
from torch.nn.functional import scaled_dot_product_attention


def median_seconds(run, steps):
    seconds = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    seconds = sorted(seconds[1:])
    return seconds[len(seconds) // 2]


def main():
    parser = argparse.ArgumentParser()
    for name, value in [("batch", 8), ("heads", 6), ("time", 256), ("size", 64), ("threads", 1), ("steps", 9)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    q, k, v = (torch.randn(options.batch, options.heads, options.time, options.size, requires_grad=True) for _ in range(3))

    def forward():
        with torch.no_grad():
            scaled_dot_product_attention(q, k, v, is_causal=True)

    def forward_and_backward():
        q.grad = k.grad = v.grad = None
        scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()

    figures = {"version": torch.__version__, "forward_seconds": median_seconds(forward, options.steps),
               "forward_and_backward_seconds": median_seconds(forward_and_backward, options.steps)}
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file)


if __name__ == "__main__":
    main()
