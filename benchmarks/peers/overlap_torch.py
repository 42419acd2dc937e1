"""The steps of benchmarks/overlap in PyTorch, with DistributedDataParallel over gloo; started by mpirun, as compare_overlap does."""

import json
import os
import statistics

import torch
import torch.distributed as dist
from gpt_torch import SIZES, Gpt, loss_on_random_tokens, optimizer_of
from torch import nn
from torch_ddp import parser_of, seconds_of_step, start, timed

ONE_BUCKET = 1 << 20  # MiB


class Way:
    def __init__(self, name, options, bucket_mb):
        self.name, self.seconds = name, []
        model = Gpt(options)
        self.model = model if bucket_mb is None else nn.parallel.DistributedDataParallel(
            model, bucket_cap_mb=bucket_mb, gradient_as_bucket_view=True)
        self.optimizer = optimizer_of(model.parameters())


def main():
    parser = parser_of(SIZES)
    parser.add_argument("--bucket-mb", default="1,4,25")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="127.0.0.1", help="address of rank 0")
    parser.add_argument("--port", default="29500")
    parser.add_argument("--interface", help="of the network; default: that of the host's name")
    options = parser.parse_args()
    os.environ.update(RANK=os.environ["OMPI_COMM_WORLD_RANK"], WORLD_SIZE=os.environ["OMPI_COMM_WORLD_SIZE"],
                      MASTER_ADDR=options.master, MASTER_PORT=options.port)
    if options.interface:
        os.environ["GLOO_SOCKET_IFNAME"] = options.interface
    start(options)
    loss_of = loss_on_random_tokens(options)
    ways = [Way("without communication", options, None), Way("all after backward", options, ONE_BUCKET)]
    ways += [Way(f"buckets of {mib} MiB", options, float(mib)) for mib in options.bucket_mb.split(",")]
    gradients = torch.ones(sum(parameter.numel() for parameter in ways[0].model.parameters()))

    wire = []
    for turn in range(-1, options.rounds):  # the first one warms up
        seconds = timed(lambda: dist.all_reduce(gradients))
        if turn >= 0:
            wire.append(seconds)
        for other in ways[1:]:
            for way in (ways[0], other):
                seconds = seconds_of_step(options, way.model, way.optimizer, loss_of, clip_norm=1.0)
                if turn >= 0:
                    way.seconds.append(seconds)

    wire = statistics.median(wire)
    alone = statistics.median(ways[0].seconds)
    steps = [{"name": way.name, "step_seconds": statistics.median(way.seconds),
              "hidden": 1 - (statistics.median(way.seconds) - alone) / wire} for way in ways]
    if dist.get_rank() == 0 and options.json:
        with open(options.json, "w") as file:
            json.dump({"version": torch.__version__, "wire_seconds": wire, "steps": steps}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
