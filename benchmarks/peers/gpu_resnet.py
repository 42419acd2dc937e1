"""The model of benchmarks/gpu/gpu_resnet in PyTorch with torch.compile and channels last, for scripts/gpu-check."""

from gpu_torch import measure, parser_of, start

import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride != 1 or channels != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        blocks, channels = [], 64
        for width, count, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
            for index in range(count):
                blocks.append(Bottleneck(channels, width, stride if index == 0 else 1))
                channels = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, 1000)

    def forward(self, images, labels):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(images))), 3, 2, 1)
        return F.cross_entropy(self.fc(self.blocks(x).mean(dim=(2, 3))), labels)


def main():
    options = parser_of([("batch", 256), ("size", 224)]).parse_args()
    start()
    with torch.device("cuda"):
        model = ResNet50().to(memory_format=torch.channels_last)
        images = torch.rand(options.batch, 3, options.size, options.size).to(memory_format=torch.channels_last)
        labels = torch.randint(1000, (options.batch,))
    model.compile()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    measure(options, model, optimizer, lambda: model(images, labels), "images", options.batch)


if __name__ == "__main__":
    main()
