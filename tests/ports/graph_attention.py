# Graph attention (Velickovic et al. 2017, arXiv 1710.10903) on a list of edges, which classifies each node.
# graph_attention.cpp is the same in C++.
import math

import torch
from torch import nn
from torch.nn import functional as F


class GraphAttention(nn.Module):
    def __init__(self, width, out, heads):
        super().__init__()
        self.shape = (heads, out)
        self.linear = nn.Linear(width, heads * out, bias=False)
        self.of_source = nn.Parameter(torch.empty(heads, out))
        nn.init.xavier_uniform_(self.of_source)
        self.of_target = nn.Parameter(torch.empty(heads, out))
        nn.init.xavier_uniform_(self.of_target)
        self.bias = nn.Parameter(torch.zeros(heads * out))

    def forward(self, x, source, target):
        h = self.linear(x).unflatten(1, self.shape)
        scores = (h * self.of_source).sum(-1)[source] + (h * self.of_target).sum(-1)[target]
        scores = F.leaky_relu(scores, 0.2)
        index = target.unsqueeze(1).expand_as(scores)
        largest = torch.full((len(x), scores.shape[1]), -math.inf)
        largest = largest.scatter_reduce(0, index, scores.detach(), "amax")
        shares = torch.exp(scores - largest[target])
        sums = torch.zeros_like(largest).index_add(0, target, shares)
        messages = (shares / sums[target]).unsqueeze(-1) * h[source]
        return torch.zeros_like(h).index_add(0, target, messages).flatten(1) + self.bias


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GraphAttention(12, 6, 4)
        self.second = GraphAttention(24, 5, 1)

    def forward(self, x, source, target):
        return self.second(F.elu(self.first(x, source, target)), source, target)


def train(weights, data):
    net = GraphNet()
    net.load_state_dict(weights)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    source, target = data["edges"]
    losses = []
    for _ in range(20):
        loss = F.cross_entropy(net(data["nodes"], source, target), data["classes"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
