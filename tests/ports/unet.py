# A U-Net that finds regions of images (Ronneberger et al. 2015, arXiv 1505.04597), with smooth activations for exact comparisons.
# unet.cpp is the same in C++.
import torch
from torch import nn
from torch.nn import functional as F


class Convolutions(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)

    def forward(self, x):
        x = F.silu(self.norm1(self.conv1(x)))
        return F.silu(self.norm2(self.conv2(x)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = Convolutions(3, 6)
        self.down2 = Convolutions(6, 12)
        self.middle = Convolutions(12, 24)
        self.up2 = nn.ConvTranspose2d(24, 12, 2, stride=2)
        self.merge2 = Convolutions(24, 12)
        self.up1 = nn.ConvTranspose2d(12, 6, 2, stride=2)
        self.merge1 = Convolutions(12, 6)
        self.output = nn.Conv2d(6, 1, 1)

    def forward(self, images):
        fine = self.down1(images)
        coarse = self.down2(F.avg_pool2d(fine, 2))
        middle = self.middle(F.avg_pool2d(coarse, 2))
        coarse = self.merge2(torch.cat([self.up2(middle), coarse], 1))
        fine = self.merge1(torch.cat([self.up1(coarse), fine], 1))
        return self.output(fine)


def train(weights, data):
    net = UNet()
    net.load_state_dict(weights)
    images, regions = (data[name].permute(0, 3, 1, 2) for name in ("images", "regions"))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.003)
    losses = []
    for _ in range(20):
        loss = F.binary_cross_entropy_with_logits(net(images), regions)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
