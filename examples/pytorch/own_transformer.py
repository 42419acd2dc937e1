# The same as 07_own_transformer.cpp in PyTorch: torchrun --nproc-per-node 4 own_transformer.py --pipeline 2 --tensor 2
# The embedding is not tied here: torch.distributed.pipelining does not share parameters between stages.
import argparse
import math
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

LENGTH, WIDTH, HEADS, BLOCKS = 64, 64, 4, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        heads = [f(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for f in (self.q, self.k, self.v)]
        y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm(x)
        return x + self.attention(y) + self.down(nn.functional.gelu(self.up(y), approximate="tanh"))


class Stage(nn.Module):
    def __init__(self, stage, stages):
        super().__init__()
        first, last = stage * BLOCKS // stages, (stage + 1) * BLOCKS // stages
        self.tokens = nn.Embedding(256, WIDTH) if stage == 0 else None
        self.positions = nn.Embedding(LENGTH, WIDTH) if stage == 0 else None
        self.blocks = nn.ModuleDict({str(i): Block() for i in range(first, last)})
        self.norm = nn.LayerNorm(WIDTH) if stage == stages - 1 else None
        self.output = nn.Linear(WIDTH, 256, bias=False) if stage == stages - 1 else None

    def forward(self, x):
        if self.tokens is not None:
            x = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks.values():
            x = block(x)
        return x if self.output is None else self.output(self.norm(x))


def loss_of(logits, targets):
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def windows(tokens, starts):
    rows = torch.stack([tokens[start:start + LENGTH + 1] for start in starts])
    return rows[:, :-1], rows[:, 1:]


def clip(parameters, pipeline, limit):
    squares = [p.grad.square().sum() for p in parameters]
    square = sum(one.full_tensor() if isinstance(one, DTensor) else one for one in squares)
    dist.all_reduce(square, group=pipeline)
    factor = min(1.0, limit / (square.sqrt().item() + 1e-6))
    for p in parameters:
        p.grad.mul_(factor)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", default="LICENSE")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=16, help="of all ranks together")
    parser.add_argument("--micro-batch-size", type=int, default=4)
    parser.add_argument("--pipeline", type=int, default=1)
    parser.add_argument("--tensor", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint-dir", default="run")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    replicas = dist.get_world_size() // (args.pipeline * args.tensor)
    mesh = init_device_mesh("cpu", (replicas, args.pipeline, args.tensor), mesh_dim_names=("data", "pipeline", "tensor"))
    stage, replica = mesh.get_local_rank("pipeline"), mesh.get_local_rank("data")
    torch.manual_seed(args.seed + stage)

    with open(args.text, "rb") as file:
        tokens = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
    split = len(tokens) - len(tokens) // 10
    training, validation = tokens[:split], tokens[split:]
    model = Stage(stage, args.pipeline)
    if args.tensor > 1:
        plan = {f"attention.{name}": ColwiseParallel() for name in ("q", "k", "v")}
        plan |= {"attention.out": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}
        for block in model.blocks.values():
            parallelize_module(block, mesh["tensor"], plan)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=0.003, weight_decay=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / args.steps)))
    first_step = 0
    if os.path.exists(os.path.join(args.checkpoint_dir, ".metadata")):
        of_model, of_optimizer = get_state_dict(model, optimizer)
        state = {"model": of_model, "optimizer": of_optimizer, "scheduler": scheduler.state_dict(), "step": 0}
        dcp.load(state, checkpoint_id=args.checkpoint_dir)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        first_step = state["step"]
    trained = DistributedDataParallel(model, process_group=mesh.get_group("data")) if replicas > 1 else model
    share = args.batch_size // replicas
    pipe = PipelineStage(trained, stage, args.pipeline, torch.device("cpu"), group=mesh.get_group("pipeline"))
    schedule = Schedule1F1B(pipe, share // args.micro_batch_size, loss_fn=loss_of)
    is_last = stage == args.pipeline - 1

    for step in range(first_step, args.steps):
        draw = torch.Generator().manual_seed(args.seed * 1_000_003 + step)
        starts = torch.randint(len(training) - LENGTH, (args.batch_size,), generator=draw)
        x, y = windows(training, starts[replica * share:(replica + 1) * share])
        losses = []
        schedule.step(*([x] if stage == 0 else []), target=y if is_last else None, losses=losses if is_last else None)
        clip(parameters, mesh.get_group("pipeline"), 1)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        if (step + 1) % 30 and step + 1 < args.steps:
            continue
        starts = range(0, len(validation) - LENGTH, LENGTH)[replica::replicas]
        found = torch.zeros(2, dtype=torch.float64)
        for start in starts:
            x, y = windows(validation, [start] * (share // args.micro_batch_size))
            losses = []
            schedule.eval(*([x] if stage == 0 else []), target=y if is_last else None, losses=losses if is_last else None)
            if is_last:
                found += torch.tensor([losses[0].item(), 1])
        dist.all_reduce(found)
        loss = (found[0] / found[1]).item()
        if dist.get_rank() == 0:
            print(f"step {step + 1}: validation_loss {loss:.4f}  perplexity {math.exp(loss):.4f}")
        of_model, of_optimizer = get_state_dict(model, optimizer)
        state = {"model": of_model, "optimizer": of_optimizer, "scheduler": scheduler.state_dict(), "step": step + 1}
        dcp.save(state, checkpoint_id=args.checkpoint_dir)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
