"""PyTorch's AdamW on the parameters of benchmarks/optimizer. Used by compare_optimizer and run by benchmarks/report."""

import argparse
import time

import torch
from turns import take_turns

FORMS = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def forms_here():
    return [name for name in FORMS if name != "fused" or int(torch.__version__.split(".")[0]) >= 2]


def parameters(layers, width):
    shapes = []
    for _ in range(layers):
        for out, into in ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width)):
            shapes += [(out, into), (out,)]
        shapes += [(width,)] * 4
    tensors = [torch.nn.Parameter(torch.full(shape, 0.02)) for shape in shapes]
    for tensor in tensors:
        tensor.grad = torch.full_like(tensor, 1e-3)
    return tensors


def step_of(tensors, form):
    """A function that makes a step and returns its seconds; the first step has been made."""
    optimizer = torch.optim.AdamW(tensors, lr=1e-5, weight_decay=0.1, **form)
    optimizer.step()

    def step():
        start = time.perf_counter()
        optimizer.step()
        return time.perf_counter() - start

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--form", choices=FORMS, default="foreach")
    parser.add_argument("--turns", required=True, help="a folder: take turns with other programs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    take_turns(options.turns, {"adamw": step_of(parameters(options.layers, options.width), FORMS[options.form])})


if __name__ == "__main__":
    main()
