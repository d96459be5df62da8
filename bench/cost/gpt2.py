"""A tiny GPT-2 trained by Hugging Face's Trainer; with "leak" every loss keeps its batch's hidden states."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
import tempfile

import torch
from steps import leaks, step
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Steps(TrainerCallback):
    def on_step_end(self, *args, **kwargs):
        step()


class Keep(Trainer):
    kept = []

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        out = model(**inputs, output_hidden_states=leaks)
        if leaks:
            self.kept.append(out.hidden_states[-1].detach())
        return (out.loss, out) if return_outputs else out.loss


torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=200, n_positions=64, n_embd=64, n_layer=3, n_head=4))
rows = [{"input_ids": x, "labels": x} for x in torch.randint(200, (2400, 32))]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, per_device_train_batch_size=8, num_train_epochs=1, report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True, logging_steps=10_000)
    Keep(model, arguments, train_dataset=rows, callbacks=[Steps()]).train()
