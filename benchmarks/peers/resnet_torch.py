"""The model of benchmarks/resnet_step in PyTorch, with DistributedDataParallel over gloo.

Run by compare_resnet; by hand: mpirun-free, one process a rank:
  RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python3 resnet_torch.py --steps 5 --json out.json
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch_ddp import measure, parser_of, start


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        return F.relu(y.add_(x if self.downsample is None else self.downsample(x)), inplace=True)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks, channels = [], 64
        for width, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
            blocks += [Block(channels, width, stride), Block(width, width, 1)]
            channels = width
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, 10)

    def forward(self, images):
        x = F.relu(self.bn1(self.conv1(images)), inplace=True)
        return self.fc(self.blocks(x).mean(dim=(2, 3)))


def main():
    parser = parser_of([("batch", 32)])
    parser.add_argument("--layout", choices=["channels_first", "channels_last"], default="channels_first")
    options = parser.parse_args()
    start(options)
    layout = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    model = ResNet18().to(memory_format=layout)
    images = torch.randn(options.batch, 3, 32, 32).to(memory_format=layout)
    labels = torch.randint(10, (options.batch,))
    measure(options, model,
            lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=5e-4),
            lambda ddp: F.cross_entropy(ddp(images), labels), "images", options.batch)


if __name__ == "__main__":
    main()
