"""Code that the PyTorch scripts share: timed steps of a model with DistributedDataParallel over gloo."""

import argparse
import json
import os
import resource
import time

import torch
import torch.distributed as dist
from torch import nn
from turns import take_turns


def parser_of(sizes):
    """`sizes`: (name, value) of the integer options that a script adds to the common ones."""
    parser = argparse.ArgumentParser()
    for name, value in [*sizes, ("steps", 5), ("warmup", 2), ("threads", 1)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--compile", action="store_true", help="torch.compile: PyTorch 2")
    parser.add_argument("--json")
    parser.add_argument("--turns", help="a folder: take turns with other programs")
    return parser


def start(options):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("gloo")


def timed(run):
    """Seconds from the common start of all ranks until all are done."""
    several = dist.is_initialized()
    if several:
        dist.barrier()
    begin = time.perf_counter()
    run()
    if several:
        dist.barrier()
    return time.perf_counter() - begin


def seconds_of_step(options, model, optimizer, loss_of, clip_norm=None):
    def run():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16"):
            loss = loss_of(model)
        loss.backward()
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()

    return timed(run)


def peak_rss_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(options, model, optimizer_of, loss_of, unit, units_per_step, clip_norm=None):
    """Takes optimizer_of(parameters) and loss_of(model). `units_per_step`: tokens or images of one rank."""
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if ranks > 1:
        model = nn.parallel.DistributedDataParallel(model)
    if options.compile:
        model = torch.compile(model)
    optimizer = optimizer_of(model.parameters())

    def run_step():
        return seconds_of_step(options, model, optimizer, loss_of, clip_norm)

    if options.turns:
        take_turns(options.turns, {"step": run_step, "memory": peak_rss_bytes})
        if ranks > 1:
            dist.destroy_process_group()
        return

    seconds = []
    for step in range(options.warmup + options.steps):
        elapsed = run_step()
        if step >= options.warmup:
            seconds.append(elapsed)

    median = sorted(seconds)[len(seconds) // 2]
    if rank == 0 and options.json:
        with open(options.json, "w") as file:
            json.dump({
                "library": "torch",
                "version": torch.__version__,
                "config": torch.__config__.show(),
                "parallel_info": torch.__config__.parallel_info(),
                "threads": torch.get_num_threads(),
                "ranks": ranks,
                "step_seconds": median,
                f"{unit}_per_second": ranks * units_per_step / median,
                "peak_rss_bytes": peak_rss_bytes(),
                "precision": options.precision,
            }, file)
    if ranks > 1:
        dist.destroy_process_group()
