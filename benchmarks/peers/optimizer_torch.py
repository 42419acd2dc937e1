"""PyTorch's optimizers on the parameters of benchmarks/optimizer. Run by benchmarks/report."""

import argparse
import time

import torch
from turns import take_turns

FORMS = {"foreach": {"foreach": True}, "fused": {"fused": True}}  # forms of AdamW

# PyTorch's optimizers by the names in benchmarks/optimizer; older versions of PyTorch lack some.
OTHERS = {"nadam": "NAdam", "radam": "RAdam", "adadelta": "Adadelta", "adafactor": "Adafactor", "muon": "Muon"}


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


def step_of(tensors, kind, **form):
    """A function that takes a step and returns its seconds, or None where there is no such optimizer."""
    optimizer = None

    def step():
        nonlocal optimizer
        if not hasattr(torch.optim, kind):
            return None
        if optimizer is None:
            some = [tensor for tensor in tensors if tensor.dim() == 2] if kind == "Muon" else tensors  # Muon takes only matrices
            optimizer = getattr(torch.optim, kind)(some, lr=1e-5, weight_decay=0.1, **form)
            optimizer.step()
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
    tensors = parameters(options.layers, options.width)
    steps = {name: step_of(tensors, kind) for name, kind in OTHERS.items()}
    take_turns(options.turns, steps | {"adamw": step_of(tensors, "AdamW", **FORMS[options.form])})


if __name__ == "__main__":
    main()
