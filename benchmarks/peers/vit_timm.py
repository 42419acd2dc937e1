"""The model of benchmarks/vit_step from timm, with DistributedDataParallel over gloo.

Run by compare_vit; by hand: mpirun-free, one process a rank:
  RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python3 vit_timm.py --steps 5 --json out.json
"""

import timm
import torch
from gpt_torch import optimizer_of
from torch.nn import functional as F
from torch_ddp import measure, parser_of, start


def main():
    options = parser_of([("batch", 8)]).parse_args()
    start(options)
    images = torch.randn(options.batch, 3, 224, 224)
    labels = torch.randint(1000, (options.batch,))
    measure(options, timm.create_model("vit_tiny_patch16_224"), lambda parameters: optimizer_of(parameters, fused=True),
            lambda model: F.cross_entropy(model(images), labels), "images", options.batch, clip_norm=1.0)


if __name__ == "__main__":
    main()
