# A Conformer block that reads speech (Gulati et al. 2020, arXiv 2005.08100), trained by CTC. conformer.cpp is the same in C++.
import torch
from torch import nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(F.silu(self.up(self.norm(x))))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        y = self.norm(x)
        return self.attention(y, y, y, need_weights=False)[0]


class Convolution(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.pointwise1 = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.norm2 = nn.BatchNorm1d(width)
        self.pointwise2 = nn.Conv1d(width, width, 1)

    def forward(self, x):
        y = F.glu(self.pointwise1(self.norm1(x).transpose(1, 2)), 1)
        y = F.silu(self.norm2(self.depthwise(y)))
        return self.pointwise2(y).transpose(1, 2)


class Conformer(nn.Module):
    def __init__(self, width, heads, kernel):
        super().__init__()
        self.feed_forward1 = FeedForward(width)
        self.attention = Attention(width, heads)
        self.convolution = Convolution(width, kernel)
        self.feed_forward2 = FeedForward(width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.feed_forward1(x)
        x = x + self.attention(x)
        x = x + self.convolution(x)
        x = x + 0.5 * self.feed_forward2(x)
        return self.norm(x)


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(10, 24)
        self.block = Conformer(24, 4, 7)
        self.output = nn.Linear(24, 9)

    def forward(self, x):
        return F.log_softmax(self.output(self.block(self.input(x))), -1)


def train(weights, data):
    net = Recognizer()
    net.load_state_dict(weights)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.002)
    losses = []
    for _ in range(20):
        scores = net(data["speech"]).transpose(0, 1)
        loss = F.ctc_loss(scores, data["letters"], data["times"], data["lengths"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
