"""A Lightning callback keeps the embeddings that each training step returns; --fixed keeps those of the newest step."""
# kind: callbacks
# holder: embeddings
# cause: outputs-kept activations-kept container-grows
# rate: 8192 B/step
# met in: Lightning-AI/pytorch-lightning#8583
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


class KeepEmbeddings(lightning.Callback):
    def __init__(self):
        self.embeddings = []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if FIXED:
            self.embeddings.clear()
        self.embeddings.append(outputs["embedding"])  # leak


class Encoder(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
        self.head = nn.Linear(32, 10)

    def training_step(self, batch, batch_idx):
        x, y = batch
        embedding = self.body(x)  # leak
        return {"loss": nn.functional.cross_entropy(self.head(embedding), y), "embedding": embedding.detach()}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
data = TensorDataset(torch.randn(3200, 64), torch.randint(0, 10, (3200,)))
keep = KeepEmbeddings()
trainer = lightning.Trainer(
    max_epochs=40,
    accelerator="cpu",
    callbacks=[keep],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Encoder(), DataLoader(data, 64, shuffle=True))
print(f"spread {keep.embeddings[-1].std().item():.6f}")
