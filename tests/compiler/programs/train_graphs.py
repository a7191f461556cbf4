"""Graphs, sets and tables: sparse matrices, messages along edges, embeddings, experts."""

from types import SimpleNamespace

import attrs
import numpy as np
import scipy.sparse as sp

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from tests.compiler.programs.kit import STEPS, blobs, program


def random_edges(nodes, edges):
    """Return edges between different nodes, (2, edges)."""
    source = flow.randint(0, nodes, (edges,))
    return flow.stack([source, (source + flow.randint(1, nodes, (edges,))) % nodes])


def normalize_adjacency(edges, nodes):
    """Return D^-1 (A + I) as a sparse tensor."""
    rows, cols = edges.numpy()
    adj = sp.coo_matrix((np.ones(len(rows)), (rows, cols)), shape=(nodes, nodes))
    adj = (adj.maximum(adj.T) + sp.eye(nodes)).tocoo()
    values = adj.data / np.asarray(adj.sum(1)).squeeze()[adj.row]
    indices = flow.tensor(np.vstack((adj.row, adj.col)).astype(np.int64))
    return flow.sparse_coo_tensor(indices, flow.tensor(values.astype(np.float32)), adj.shape)


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(flow.empty(in_features, out_features))
        self.bias = nn.Parameter(flow.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, input, adj):
        return flow.sparse.mm(adj, input @ self.weight) + self.bias

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.weight.shape[0]} -> {self.weight.shape[1]})"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1, self.gc2 = GraphConvolution(nfeat, nhid), GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


@program
def gcn_sparse(compiled):
    """a graph network on one sparse matrix: training on some nodes, accuracy on others"""
    nodes = 12
    adj = normalize_adjacency(random_edges(nodes, 20), nodes)
    features, labels = flow.randn(nodes, 4), flow.arange(nodes) % 3
    idx_train, idx_val = flow.arange(8), flow.arange(8, nodes)
    model = GCN(nfeat=4, nhid=6, nclass=3, dropout=0.3)
    optimizer = flow.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)

    def accuracy(output, labels):
        preds = output.max(1)[1].type_as(labels)
        return preds.eq(labels).double().sum() / len(labels)

    @compiled
    def train():
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        model.eval()
        output = model(features, adj)
        return loss_train.item(), accuracy(output[idx_val], labels[idx_val]).item()

    for _ in range(STEPS):
        yield train(), model, optimizer


class Data:
    """A batch of graphs, of whatever it is given."""

    def __init__(self, x=None, edge_index=None, y=None, **kwargs):
        self.x, self.edge_index, self.y = x, edge_index, y
        for key, value in kwargs.items():
            setattr(self, key, value)

    @property
    def keys(self):
        return [key for key in self.__dict__ if self[key] is not None]

    def __getitem__(self, key):
        return getattr(self, key, None)

    def __setitem__(self, key, value):
        setattr(self, key, value)

    def __contains__(self, key):
        return key in self.keys

    def apply(self, func):
        for key in self.keys:
            self[key] = func(self[key])
        return self

    def to(self, device):
        return self.apply(lambda x: x.to(device) if isinstance(x, flow.Tensor) else x)

    @property
    def num_nodes(self):
        return self.x.size(0)


class MessagePassing(nn.Module):
    """Messages along edges, summed or averaged at their ends."""

    def __init__(self, aggr="add"):
        super().__init__()
        self.aggr = aggr

    def propagate(self, edge_index, **kwargs):
        row, col = edge_index
        msg = self.message(kwargs["x"][col], kwargs["x"][row])
        out = msg.new_zeros(kwargs["x"].size(0), msg.size(-1)).index_add_(0, col, msg)
        if self.aggr == "mean":
            ones = msg.new_ones(msg.size(0), 1)
            out = out / out.new_zeros(out.size(0), 1).index_add_(0, col, ones).clamp(min=1)
        return self.update(out, **kwargs)

    def update(self, aggr_out, **kwargs):
        return aggr_out


class EdgeConv(MessagePassing):
    def __init__(self, in_channels, out_channels):
        super().__init__(aggr="mean")
        self.mlp = nn.Sequential(nn.Linear(2 * in_channels, out_channels), nn.ReLU())

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.mlp(flow.cat([x_i, x_j - x_i], dim=1))


@program
def message_passing(compiled):
    """messages along the edges of graph batches, which are objects of a class with **kwargs"""
    conv, lin = EdgeConv(3, 6), nn.Linear(6, 1)
    net = nn.ModuleList([conv, lin])
    optimizer = flow.optim.NAdam(net.parameters(), lr=0.01)

    @compiled
    def train(data):
        data = data.to("cpu")
        optimizer.zero_grad()
        h = conv(data.x, data.edge_index)
        pooled = h.new_zeros(data.num_graphs, h.size(1)).index_add_(0, data.batch, h)
        loss = F.l1_loss(lin(pooled).view(-1), data.y)
        if "edge_weight" in data:
            loss = loss * data.edge_weight.mean()
        loss.backward()
        optimizer.step()
        return float(loss) * data.num_graphs

    for _ in range(STEPS):
        data = Data(flow.randn(10, 3), random_edges(10, 16), num_graphs=2)
        data.batch = flow.arange(10) // 5
        data.y = flow.stack([data.x[:5].sum(), data.x[5:].sum()])
        yield train(data), net, optimizer


@attrs.frozen
class Hyper:
    users: int = 9
    items: int = 7
    factors: int = 3
    reg: float = attrs.field(default=1e-3, validator=attrs.validators.ge(0))
    rates: tuple = (0.1, 0.05)


@program
def matrix_factorization(compiled):
    """a recommender: embeddings and biases, two learning rates, options of an attrs class"""
    hp = Hyper()
    P, Q = nn.Embedding(hp.users, hp.factors), nn.Embedding(hp.items, hp.factors)
    biases = nn.ParameterList([flow.zeros(hp.users), flow.zeros(hp.items)])
    mean = nn.Parameter(flow.tensor(3.0), requires_grad=False)
    optimizer = flow.optim.SGD(
        [
            {"params": [*P.parameters(), *Q.parameters()], "lr": hp.rates[0]},
            {"params": list(biases), "lr": hp.rates[1], "momentum": 0.5},
        ],
        lr=0.1,
    )

    def predict(u, i):
        return (P(u) * Q(i)).sum(-1) + biases[0][u] + biases[1][i] + mean

    @compiled
    def step(batch):
        u, i, rating = batch["user"], batch["item"], batch["rating"]
        error = predict(u, i) - rating
        penalty = hp.reg * sum(w.pow(2).sum() for w in [*P.parameters(), *Q.parameters()])
        loss = error.pow(2).mean() + penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "rmse": error.detach().pow(2).mean().sqrt().item()}

    for _ in range(STEPS):
        user, item = flow.randint(0, hp.users, (8,)), flow.randint(0, hp.items, (8,))
        rating = ((user + item) % 5 + 1).float()
        yield step({"user": user, "item": item, "rating": rating}), P, Q, biases, optimizer


@program
def mixture_of_experts(compiled):
    """twenty experts of one class behind a gate of the best two, and a loss that balances them"""

    class Expert(nn.Module):
        count = 0

        def __init__(self, dim):
            super().__init__()
            Expert.count += 1
            self.name = f"expert-{Expert.count}"
            self.fc = nn.Linear(dim, dim)

        def forward(self, x):
            return flow.tanh(self.fc(x))

    cfg = SimpleNamespace(experts=20, k=2, moe=SimpleNamespace(balance=0.01))
    experts = nn.ModuleList(Expert(4) for _ in range(cfg.experts))
    gate, head = nn.Linear(4, cfg.experts), nn.Linear(4, 3)
    net = nn.ModuleDict({"experts": experts, "gate": gate, "head": head})
    optimizer = flow.optim.Adam(net.parameters(), lr=0.01)

    @compiled
    def step(x, y):
        scores, chosen = gate(x).topk(cfg.k, dim=-1)
        weights = flow.zeros(len(x), cfg.experts).scatter(1, chosen, scores.softmax(-1))
        outputs = flow.stack([expert(x) for expert in experts], dim=1)
        mixed = (weights.unsqueeze(-1) * outputs).sum(dim=1)
        balance = weights.mean(0).var() * cfg.experts
        loss = F.cross_entropy(head(mixed), y) + cfg.moe.balance * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for x, y in blobs():
        yield step(x, y), net, optimizer
