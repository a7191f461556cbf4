"""transformers: a small ViT learns to classify images, is saved and loaded."""

import torch
from transformers import ViTConfig, ViTForImageClassification

config = ViTConfig(
    hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, image_size=32,
    patch_size=8, num_labels=5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
model = ViTForImageClassification(config)
images, labels = torch.randn(8, 3, 32, 32), torch.randint(0, 5, (8,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for _ in range(6):
    loss = model(pixel_values=images, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())

model.save_pretrained("vit")
again = ViTForImageClassification.from_pretrained("vit", attn_implementation="eager").eval()
with torch.no_grad():
    answer = again(pixel_values=images, output_attentions=True)
    print("logits", answer.logits)
    print("attention", answer.attentions[-1].std())
