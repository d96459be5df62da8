"""Trains by Lightning, whose module keeps each batch's outputs for the end of an epoch that never uses them."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning").setLevel(logging.ERROR)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(256, 256)
        self.outputs = []  # holder: outputs

    def training_step(self, batch, _):
        out = self.layer(batch[0])  # leak
        self.outputs.append(out)
        return out.square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
loader = DataLoader(TensorDataset(torch.randn(1600, 256)), batch_size=64)
trainer = lightning.Trainer(max_epochs=10, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Net(), loader)
print("trained")
