"""pytorch-ignite: engines train and evaluate, with handlers, metrics and a checkpoint."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(48, 8)
data = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=12, shuffle=True)
model, lossy = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
trainer = create_supervised_trainer(model, optimizer, lossy)
evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy(), "loss": Loss(lossy)})


@trainer.on(Events.ITERATION_COMPLETED)
def show(engine):
    print(engine.state.output)


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(data)
    print("metrics", evaluator.state.metrics["accuracy"], evaluator.state.metrics["loss"])


patience = EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer)
evaluator.add_event_handler(Events.COMPLETED, patience)
saver = Checkpoint({"model": model, "optimizer": optimizer}, DiskSaver("kept"), n_saved=1)
trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
trainer.run(data, max_epochs=2)
saved = torch.load(saver.last_checkpoint, weights_only=True)
print("saved", sum(p.sum() for p in saved["model"].values()))
