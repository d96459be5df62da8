"""A LightningModule collects what its validation steps computed and does not clear the list; --fixed does."""
# kind: callbacks
# holder: validation_step_outputs
# cause: outputs-kept container-grows
# rate: 30720 B/epoch
# met in: Lightning-AI/pytorch-lightning#16520
import logging
import sys
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.validation_step_outputs = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)  # leak
        self.validation_step_outputs.append({"logits": logits, "labels": y})  # leak

    def on_validation_epoch_end(self):
        latest = self.validation_step_outputs[-10:]
        self.spread = torch.cat([output["logits"] for output in latest]).std().item()
        if FIXED:
            self.validation_step_outputs.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
train = TensorDataset(torch.randn(1280, 64), torch.randint(0, 10, (1280,)))
validation = TensorDataset(torch.randn(640, 64), torch.randint(0, 10, (640,)))
model = Classifier()
trainer = lightning.Trainer(
    max_epochs=60,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(train, 64, shuffle=True), DataLoader(validation, 64))
print(f"spread {model.spread:.6f}")
