"""transformers: a small BERT learns to classify; it is saved and loaded."""

import torch
from transformers import BertConfig, BertForSequenceClassification

config = BertConfig(
    vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=128, num_labels=3, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.0,
)  # fmt: skip
model = BertForSequenceClassification(config)
tokens, labels = torch.randint(0, 200, (8, 16)), torch.randint(0, 3, (8,))
mask = torch.ones(8, 16, dtype=torch.int64)
mask[:4, 12:] = 0
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(6):
    loss = model(input_ids=tokens, attention_mask=mask, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(loss.item())

model.save_pretrained("bert")
again = BertForSequenceClassification.from_pretrained("bert").eval()
model.eval()
with torch.no_grad():
    print("again", (model(tokens).logits - again(tokens).logits).abs().max())
    print("logits", again(tokens, attention_mask=mask).logits)
