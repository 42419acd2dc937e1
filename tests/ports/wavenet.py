# A stack of gated, dilated, causal convolutions (van den Oord et al. 2016, arXiv 1609.03499) that continues a sound.
# wavenet.cpp is the same in C++.
import torch
from torch import nn
from torch.nn import functional as F


class DilatedLayer(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.dilation = dilation
        self.gated = nn.Conv1d(channels, 2 * channels, 2, dilation=dilation)
        self.residual = nn.Conv1d(channels, channels, 1)
        self.skip = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        filter, gate = self.gated(F.pad(x, (self.dilation, 0))).chunk(2, 1)
        y = torch.tanh(filter) * torch.sigmoid(gate)
        return x + self.residual(y), self.skip(y)


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.layers = nn.ModuleList(DilatedLayer(16, dilation) for dilation in (1, 2, 4, 8))
        self.hidden = nn.Conv1d(16, 32, 1)
        self.output = nn.Conv1d(32, 32, 1)

    def forward(self, samples):
        x = self.embedding(samples).transpose(1, 2)
        skips = 0
        for layer in self.layers:
            x, skip = layer(x)
            skips = skips + skip
        return self.output(F.relu(self.hidden(F.relu(skips))))


def train(weights, data):
    net = WaveNet()
    net.load_state_dict(weights)
    samples = data["samples"]
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(net(samples[:, :-1]), samples[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
