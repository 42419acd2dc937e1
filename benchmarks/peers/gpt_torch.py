"""The model of benchmarks/gpt_step in PyTorch, with DistributedDataParallel over gloo.

Run by compare_gpt; by hand: mpirun-free, one process a rank:
  RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python3 gpt_torch.py --steps 5 --json out.json
"""

import argparse
import json
import math
import os
import resource
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.mlp_proj = nn.Linear(4 * width, width)
        self.mask = torch.tril(torch.ones(block, block, dtype=torch.bool))  # no buffer: gloo of torch 1.13 cannot send bool

    def attention(self, x):
        batch, time_steps, width = x.shape
        q, k, v = self.c_attn(x).split(width, dim=2)
        q, k, v = (t.view(batch, time_steps, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
            scores = scores.masked_fill(~self.mask[:time_steps, :time_steps], float("-inf"))
            y = F.softmax(scores, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(batch, time_steps, width))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        hidden = self.c_fc(self.ln_2(x))
        try:
            hidden = F.gelu(hidden, approximate="tanh")
        except TypeError:
            hidden = F.gelu(hidden)
        return x + self.mlp_proj(hidden)


class Gpt(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.wte = nn.Embedding(options.vocabulary, options.width)
        self.wpe = nn.Embedding(options.block, options.width)
        self.blocks = nn.ModuleList(Block(options.width, options.heads, options.block) for _ in range(options.layers))
        self.ln_f = nn.LayerNorm(options.width)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def main():
    parser = argparse.ArgumentParser()
    for name, value in [("layers", 6), ("heads", 6), ("width", 384), ("block", 256), ("vocabulary", 256),
                        ("batch-per-rank", 8), ("steps", 5), ("warmup", 2), ("threads", 1)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--json")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    model = Gpt(options)
    if ranks > 1:
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    tokens = torch.randint(options.vocabulary, (options.batch_per_rank, options.block))
    targets = torch.randint(options.vocabulary, (options.batch_per_rank, options.block))

    seconds = []
    for step in range(options.warmup + options.steps):
        if ranks > 1:
            dist.barrier()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bf16"):
            loss = model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if ranks > 1:
            dist.barrier()
        if step >= options.warmup:
            seconds.append(time.perf_counter() - start)

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
                "tokens_per_second": ranks * options.batch_per_rank * options.block / median,
                "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "precision": options.precision,
            }, file)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
