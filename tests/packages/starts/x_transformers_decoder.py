"""x-transformers: a decoder with rotary places and normed heads learns, and generates."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

layers = Decoder(dim=64, depth=2, heads=4, rotary_pos_emb=True, ff_glu=True, attn_qk_norm=True)
model = AutoregressiveWrapper(TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=layers))
tokens = torch.randint(0, 50, (4, 32))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(6):
    loss = model(tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
model.eval()
print("generated", model.generate(tokens[:2, :4], 10, temperature=0.0))
