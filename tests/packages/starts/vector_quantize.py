"""vector-quantize-pytorch: a code book, its residuals, and finite scalars in an autoencoder."""

import torch
from torch import nn
from vector_quantize_pytorch import FSQ, ResidualVQ, VectorQuantize

x = torch.randn(4, 24, 16)
books = [
    VectorQuantize(dim=8, codebook_size=32, decay=0.8, commitment_weight=0.25),
    ResidualVQ(dim=8, codebook_size=16, num_quantizers=2),
    FSQ([5, 5, 4], dim=8),
]
for book in books:
    encoder, decoder = nn.Linear(16, 8), nn.Linear(8, 16)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 3e-3)
    for _ in range(4):
        quantized, *codes = book(encoder(x))
        loss = nn.functional.mse_loss(decoder(quantized), x)
        if len(codes) == 2:
            loss = loss + codes[1].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    print("codes", codes[0].sum())
