"""A LightningModule logs, validates, clears its outputs and keeps an averaged copy of its weights."""
# kind: callbacks
# expect: clean
import logging
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import StochasticWeightAveraging
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.outputs = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.outputs.append(self.net(x))

    def on_validation_epoch_end(self):
        self.log("spread", torch.cat(self.outputs).std())
        self.outputs.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


lightning.seed_everything(0, verbose=False)
train = TensorDataset(torch.randn(1280, 64), torch.randint(0, 10, (1280,)))
validation = TensorDataset(torch.randn(640, 64), torch.randint(0, 10, (640,)))
trainer = lightning.Trainer(
    max_epochs=40,
    accelerator="cpu",
    callbacks=[StochasticWeightAveraging(swa_lrs=1e-3, swa_epoch_start=0.3)],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Classifier(), DataLoader(train, 64, shuffle=True), DataLoader(validation, 64))
print(f"spread {float(trainer.callback_metrics['spread']):.6f}")
