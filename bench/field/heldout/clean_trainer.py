"""A transformers Trainer trains a tiny GPT-2, logs, and evaluates; its log is a few numbers each time."""
# kind: callbacks
# expect: clean
import tempfile
import warnings

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)


class Tokens(Dataset):
    def __init__(self, count, seed):
        source = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(0, 50, (count, 16), generator=source)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


config = GPT2Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=2)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=300,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=32,
        eval_strategy="steps",
        eval_steps=25,
        save_strategy="no",
        logging_steps=25,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
        log_level="error",
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=Tokens(2400, 0),
        eval_dataset=Tokens(128, 1),
    )
    trainer.remove_callback(PrinterCallback)  # it prints how long each evaluation took
    trainer.train()
    print(f"loss {trainer.evaluate()['eval_loss']:.5f}")
