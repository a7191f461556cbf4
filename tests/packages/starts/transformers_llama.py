"""transformers: a small Llama with grouped heads learns, generates, is saved and loaded."""

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=120, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
    bos_token_id=0, eos_token_id=1, pad_token_id=1,
)  # fmt: skip
model = LlamaForCausalLM(config)
tokens = torch.randint(2, 120, (4, 24))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=6)
for _ in range(6):
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print(loss.item())

model.eval()
written = model.generate(tokens[:2, :6], max_new_tokens=10, do_sample=False)
print("generated", written)
model.save_pretrained("llama")
again = AutoModelForCausalLM.from_pretrained("llama").eval()
print(
    "again", (again.generate(tokens[:2, :6], max_new_tokens=10, do_sample=False) == written).all()
)
with torch.no_grad():
    print("logits", again(tokens).logits.mean(-1))
