"""transformers: its Trainer, with a schedule and a validation, teaches a small T5 to copy."""

import torch
from transformers import (
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainerCallback,
    TrainingArguments as Arguments,
)

config = T5Config(
    vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0,
    decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
)  # fmt: skip


class Show(TrainerCallback):
    def on_log(self, args, state, control, logs, **kwargs):
        if "loss" in logs:
            print(logs["loss"])


words = torch.randint(2, 60, (24, 10))
data = [{"input_ids": line, "labels": line} for line in words]
arguments = Arguments(
    "copies", per_device_train_batch_size=4, max_steps=6, logging_steps=1, learning_rate=1e-2,
    report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True,
)  # fmt: skip
model = T5ForConditionalGeneration(config)
trainer = Trainer(model, arguments, train_dataset=data, eval_dataset=data[:8], callbacks=[Show()])
trainer.train()
print("validation", trainer.evaluate()["eval_loss"])
print("generated", model.generate(words[:2], max_new_tokens=6, do_sample=False))
