"""transformers: a small GPT-2 learns text, and generates with a cache, greedily and by chance."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(
    vocab_size=100, n_positions=64, n_embd=48, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=99,
    pad_token_id=99, resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.0,
)  # fmt: skip
model = GPT2LMHeadModel(config)
tokens = (torch.arange(32) * 7 % 50).repeat(4, 1) + torch.randint(0, 3, (4, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
for _ in range(8):
    loss = model(tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())

model.eval()
print("greedy", model.generate(tokens[:2, :8], max_new_tokens=12, do_sample=False))
print("beams", model.generate(tokens[:2, :8], max_new_tokens=8, num_beams=3, do_sample=False))
print("sampled", model.generate(tokens[:2, :8], max_new_tokens=12, do_sample=True, top_k=10))
