"""The model of benchmarks/llama_step in PyTorch, with DistributedDataParallel over gloo.

Run by compare_llama; by hand: mpirun-free, one process a rank:
  RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python3 llama_torch.py --steps 5 --json out.json
"""

import torch
from gpt_torch import loss_on_random_tokens, optimizer_of
from torch import nn
from torch.nn import functional as F
from torch_ddp import measure, parser_of, start


def rotated(x, cosines, sines):
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-second, first), dim=-1) * sines


class Block(nn.Module):
    def __init__(self, width, hidden, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.input_norm = nn.RMSNorm(width, eps=1e-6)
        self.qkv_proj = nn.Linear(width, (heads + 2 * kv_heads) * self.size, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def attention(self, x, angles):
        batch, time, width = x.shape
        qkv = self.qkv_proj(x).view(batch, time, -1, self.size).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        q, k = rotated(q, *angles), rotated(k, *angles)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x, angles):
        x = x + self.attention(self.input_norm(x), angles)
        y = self.norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Llama(nn.Module):
    def __init__(self, options):
        super().__init__()
        width, heads = options.width, options.heads
        self.embed_tokens = nn.Embedding(options.vocabulary, width)
        self.layers = nn.ModuleList(
            Block(width, options.hidden, heads, options.kv_heads) for _ in range(options.layers)
        )
        self.norm = nn.RMSNorm(width, eps=1e-6)
        size = width // heads
        frequencies = 1 / 10000 ** (torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(options.block), frequencies).repeat(1, 2)
        self.angles = (angles.cos(), angles.sin())

    def forward(self, tokens, targets):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, self.angles)
        logits = F.linear(self.norm(x), self.embed_tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


SIZES = [("layers", 6), ("heads", 6), ("kv-heads", 2), ("width", 384), ("hidden", 1024), ("block", 256),
         ("vocabulary", 256), ("batch", 8)]


def main():
    options = parser_of(SIZES).parse_args()
    start(options)
    measure(options, Llama(options), lambda parameters: optimizer_of(parameters, fused=True),
            loss_on_random_tokens(options), "tokens", options.batch * options.block, clip_norm=1.0)


if __name__ == "__main__":
    main()
