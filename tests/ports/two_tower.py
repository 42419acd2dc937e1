# Two towers: queries and items that belong together get vectors of one direction (Radford et al. 2021, arXiv 2103.00020, for
# images and texts). two_tower.cpp is the same in C++.
import torch
from torch import nn
from torch.nn import functional as F


class Tower(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.Embedding(words, 16, padding_idx=0)
        self.hidden = nn.Linear(16, 32)
        self.output = nn.Linear(32, 12)

    def forward(self, words):
        x = self.embedding(words).sum(1) / (words != 0).sum(1, keepdim=True)
        return F.normalize(self.output(F.gelu(self.hidden(x))), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.queries = Tower(40)
        self.items = Tower(60)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def loss(self, queries, items):
        cosines = self.queries(queries) @ self.items(items).T
        logits = self.log_scale.exp() * cosines
        labels = torch.arange(len(queries))
        return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels))


def train(weights, data):
    net = TwoTower()
    net.load_state_dict(weights)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)
    losses = []
    for _ in range(20):
        loss = net.loss(data["queries"], data["items"])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        losses.append(loss.item())
    return losses
