"""The model of benchmarks/gpu/gpu_gpt in PyTorch with torch.compile, flash attention and fused AdamW, for scripts/gpu-check."""

from gpu_torch import measure, parser_of, start

import torch
from torch import nn
from torch.nn import functional as F

SIZES = [("layers", 12), ("heads", 12), ("width", 768), ("block", 1024), ("vocabulary", 50304), ("batch", 32)]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.mlp_proj = nn.Linear(4 * width, width)

    def attention(self, x):
        batch, time, width = x.shape
        q, k, v = (t.view(batch, time, self.heads, -1).transpose(1, 2) for t in self.c_attn(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.wte = nn.Embedding(options.vocabulary, options.width)
        self.wpe = nn.Embedding(options.block, options.width)
        self.blocks = nn.ModuleList(Block(options.width, options.heads) for _ in range(options.layers))
        self.ln_f = nn.LayerNorm(options.width)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def last_layer(self, x, targets):
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[:tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.last_layer(x, targets)


def compile_blocks(model):
    """All blocks run the code compiled for the first one; for large models this compiles in a fraction of the time."""
    for block in model.blocks:
        block.compile()
    model.last_layer = torch.compile(model.last_layer)


def optimizer_of(model):
    """Weight decay as with Decay::matrices: only for weights of two dims."""
    groups = [{"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() != 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)


def main():
    parser = parser_of(SIZES)
    parser.add_argument("--compile", choices=["model", "blocks"], default="model")
    options = parser.parse_args()
    start()
    with torch.device("cuda"):
        model = Gpt(options)
        tokens, targets = torch.randint(options.vocabulary, (2, options.batch, options.block))
    if options.compile == "model":
        model.compile()
    else:
        compile_blocks(model)
    measure(options, model, optimizer_of(model), lambda: model(tokens, targets), "tokens", options.batch * options.block,
            clip_norm=1.0)


if __name__ == "__main__":
    main()
