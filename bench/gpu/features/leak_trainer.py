"""Trains by Transformers' Trainer, whose callback keeps the hidden states of a probe."""

import os
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainerCallback, TrainingArguments, set_seed

os.environ["HF_HUB_OFFLINE"] = "1"
set_seed(0)
model = BertForSequenceClassification(BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, max_position_embeddings=64))
data = [{"input_ids": torch.arange(32) % 100, "attention_mask": torch.ones(32, dtype=torch.long), "labels": torch.tensor(i % 2)} for i in range(1600)]


class Probe(TrainerCallback):
    def __init__(self):
        self.states = []  # holder: states

    def on_step_end(self, args, state, control, model=None, **kwargs):
        with torch.no_grad():
            ids = torch.arange(512, device=model.device).reshape(16, 32) % 100
            self.states.append(model(ids, output_hidden_states=True).hidden_states)  # leak


with tempfile.TemporaryDirectory() as folder:
    options = TrainingArguments(folder, per_device_train_batch_size=8, max_steps=200, report_to=[], logging_strategy="no", save_strategy="no", disable_tqdm=True)
    trainer = Trainer(model, options, train_dataset=data, callbacks=[Probe()])
    trainer.remove_callback(PrinterCallback)  # prints how long it took
    trainer.train()
print("trained")
