"""Code that the PyTorch scripts for a GPU share: compiled training steps in mixed bfloat16, timed as in benchmarks/gpu."""

import argparse
import itertools
import json
import statistics
import sys

try:
    import torch
except ImportError:
    sys.stderr.write("skipped: this Python has no torch\n")
    sys.exit(77)

WARM_UP = 10


def parser_of(sizes):
    """`sizes`: (name, value) of the integer options that a script adds to the common ones."""
    parser = argparse.ArgumentParser()
    for name, value in [*sizes, ("steps", 20)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser


def start():
    if not torch.cuda.is_available():
        sys.stderr.write("skipped: torch finds no NVIDIA GPU\n")
        sys.exit(77)
    if torch.__version__ < "2.5":
        sys.exit(f"error: torch is {torch.__version__}, but versions before 2.5 compile blocks that share code one by one")
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True


def measure(options, model, optimizer, loss_of, unit, units_per_step, clip_norm=None):
    """Prints one line of JSON. loss_of() is the loss of a step, `unit` is "tokens" or "images"."""
    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of()
        loss.backward()
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        return loss

    for _ in range(WARM_UP):
        step()
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(options.steps + 1)]
    ends[0].record()
    for end in ends[1:]:
        loss = step()
        end.record()
    torch.cuda.synchronize()
    seconds = statistics.median(begin.elapsed_time(end) * 1e-3 for begin, end in itertools.pairwise(ends))
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({"step_seconds": seconds, f"{unit}_per_second": units_per_step / seconds, "memory_bytes": total - free,
                      "loss": loss.item(), "gpu": torch.cuda.get_device_name(), "version": torch.__version__}))
