"""compute_metrics keeps the predictions of every evaluation of a Trainer; --fixed keeps the accuracies."""
# kind: callbacks
# holder: evaluations
# cause: outputs-kept container-grows
# rate: 266240 B/evaluation
# met in: huggingface/transformers#12878
import sys
import tempfile
import warnings

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainingArguments

FIXED = "--fixed" in sys.argv
warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)


class Sentences(Dataset):
    def __init__(self, count, seed):
        source = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(2, 50, (count, 8), generator=source)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i].sum() % 128}


class Curves:
    def __init__(self):
        self.evaluations = []

    def __call__(self, prediction):
        accuracy = float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())
        self.evaluations.append(accuracy if FIXED else prediction)  # leak
        return {"accuracy": accuracy}


config = BertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    num_labels=128,
)
curves = Curves()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=160,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=128,
        eval_strategy="steps",
        eval_steps=4,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=Sentences(640, 0),
        eval_dataset=Sentences(512, 1),
        compute_metrics=curves,
    )
    trainer.remove_callback(PrinterCallback)  # it prints how long each evaluation took
    result = trainer.train()  # leak
print(f"loss {result.training_loss:.5f} evaluations {len(curves.evaluations)}")
