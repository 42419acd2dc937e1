"""The model of benchmarks/mlp_step in PyTorch, with DistributedDataParallel over gloo. Run by compare_mlp."""

import torch
from torch import nn
from torch.nn import functional as F
from torch_ddp import measure, parser_of, start


def main():
    options = parser_of([("batch", 8), ("in", 32), ("hidden", 64), ("out", 10)]).parse_args()
    start(options)
    features = getattr(options, "in")
    model = nn.Sequential(nn.Linear(features, options.hidden), nn.ReLU(), nn.Linear(options.hidden, options.out))
    x = torch.randn(options.batch, features)
    target = torch.randint(options.out, (options.batch,))
    options.steps, options.warmup = 300 * options.steps, 300  # its steps are timed one by one
    measure(options, model, lambda parameters: torch.optim.AdamW(parameters, lr=1e-6, fused=True),
            lambda ddp: F.cross_entropy(ddp(x), target), "samples", options.batch)


if __name__ == "__main__":
    main()
