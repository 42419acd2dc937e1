"""The model of benchmarks/gpt_step in PyTorch, with DistributedDataParallel over gloo.

Run by compare_gpt; by hand: mpirun-free, one process a rank:
  RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python3 gpt_torch.py --steps 5 --json out.json
"""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch_ddp import measure, parser_of, start


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


SIZES = [("layers", 6), ("heads", 6), ("width", 384), ("block", 256), ("vocabulary", 256), ("batch", 8)]


def optimizer_of(parameters, **form):
    return torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, **form)


def loss_on_random_tokens(options):
    tokens = torch.randint(options.vocabulary, (options.batch, options.block))
    targets = torch.randint(options.vocabulary, (options.batch, options.block))
    return lambda model: model(tokens, targets)


def main():
    parser = parser_of(SIZES)
    parser.add_argument("--fused", action="store_true", help="the fused AdamW of PyTorch 2")
    options = parser.parse_args()
    start(options)
    form = {"fused": True} if options.fused else {}
    measure(options, Gpt(options), lambda parameters: optimizer_of(parameters, **form), loss_on_random_tokens(options),
            "tokens", options.batch * options.block, clip_norm=1.0)


if __name__ == "__main__":
    main()
