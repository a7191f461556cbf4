"""torch_geometric: a graph convolutional network labels the nodes of a graph."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected

edges = to_undirected(torch.randint(0, 60, (2, 200)))
data = Data(x=torch.randn(60, 16), edge_index=edges, y=torch.randint(0, 4, (60,)))
data.train_mask = torch.arange(60) < 40


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(16, 32), GCNConv(32, 4)

    def forward(self, x, edges):
        x = F.dropout(F.relu(self.first(x, edges)), 0.3, training=self.training)
        return F.log_softmax(self.second(x, edges), dim=1)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(8):
    optimizer.zero_grad()
    loss = F.nll_loss(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    print(loss.item())
