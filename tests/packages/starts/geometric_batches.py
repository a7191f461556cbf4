"""torch_geometric: attention, SAGE and pooling classify graphs that are loaded in batches."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, SAGEConv, global_max_pool, global_mean_pool

graphs = [
    Data(x=torch.randn(n, 8), edge_index=torch.randint(0, n, (2, 3 * n)), y=torch.tensor([n % 2]))
    for n in range(5, 17)
]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attend, self.sage = GATConv(8, 16, heads=2), SAGEConv(32, 16)
        self.out = torch.nn.Linear(32, 2)

    def forward(self, data):
        x = F.elu(self.attend(data.x, data.edge_index))
        x = self.sage(x, data.edge_index).relu()
        pools = [global_mean_pool(x, data.batch), global_max_pool(x, data.batch)]
        return self.out(torch.cat(pools, dim=1))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(2):
    for batch in DataLoader(graphs, batch_size=4, shuffle=True):
        loss = F.cross_entropy(model(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
