"""pytorch-lightning: a Trainer fits, validates, and goes on from its checkpoint."""

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(pl.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 3))

    def training_step(self, batch, number):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        print(loss.item())
        return loss

    def validation_step(self, batch, number):
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)]


x = torch.randn(32, 10)
data = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=8)
model = Classifier()
quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = pl.Trainer(max_epochs=2, accelerator="cpu", gradient_clip_val=1.0, **quiet)
trainer.fit(model, data, data)
print("validation", trainer.callback_metrics["val_loss"])
trainer.save_checkpoint("model.ckpt")
again = Classifier.load_from_checkpoint("model.ckpt")
print("again", (again.net(x) - model.net(x)).abs().max())
