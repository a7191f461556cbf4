"""One training step of a small network on ten handwritten digits.

The scans are the first ones of the Optical Recognition of Handwritten Digits data (E. Alpaydin and
C. Kaynak, 1998, https://doi.org/10.24432/C50P49, CC BY 4.0): 8 by 8 pixels, a letter for each.
"""

import oneflow_lite as flow
from oneflow_lite import nn

SCANS = """
005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000
000cd500000bg900003fg60007fgg200001gg300001gg600001gg600000bga00
0004fc00003gfe00008d8g000016fb00018df10009gg500003dggb500003bg90
007fd10008d6f400021dd000002fb1000001cc1000001a8000845e90007dd900
0001b00000078000001d6220007f098005ga0g6004fgdg100003fa000002g400
00ca000000egge0000dgfa1000bgg70000047g7000004g900054cg40009gga00
000cd000005g800000dg300000ed000000fc720000dgdg30007gbf800019fb30
0078dgf100774bc000008d100488ff6002bff400000g5000009f100000d50000
009e810000ceec00009a0f40003gce20004gg20003g8ad2001f13g8000bgfb10
00bc000002gggd0003gcae0001g1cf0000dg9f20000309b000009f40009cd300
""".split()

images = flow.tensor([[int(ink, 17) / 16 for ink in scan] for scan in SCANS]).reshape(-1, 8, 8)
labels = flow.arange(10)

flow.manual_seed(0)
network = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = flow.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)

optimizer.zero_grad()
loss = nn.functional.cross_entropy(network(images), labels)
loss.backward()
optimizer.step()
print(loss.item())
