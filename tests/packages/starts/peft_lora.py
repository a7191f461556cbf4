"""peft: low-rank adapters teach a frozen GPT-2, are saved, loaded and merged."""

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(
    vocab_size=80, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
    attn_pdrop=0.0, bos_token_id=0, eos_token_id=1,
)  # fmt: skip
base = GPT2LMHeadModel(config)
base.save_pretrained("base")
adapters = LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True)
model = get_peft_model(base, adapters)
print("trained", *model.get_nb_trainable_parameters())
tokens = torch.randint(2, 80, (4, 16))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for _ in range(6):
    loss = model(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())

model.save_pretrained("adapters")
again = PeftModel.from_pretrained(GPT2LMHeadModel.from_pretrained("base"), "adapters").eval()
model.eval()
with torch.no_grad():
    print("again", (again(tokens).logits - model(tokens).logits).abs().max())
    print("merged", again.merge_and_unload()(tokens).logits.mean(-1))
