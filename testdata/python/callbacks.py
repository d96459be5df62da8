"""memdiag's callbacks with the real libraries, each on a tiny random model. Argument: the library."""

import sys
import tempfile

import torch

import memdiag.callbacks

torch.manual_seed(0)
torch.set_num_threads(1)
marks = []
DATA = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1))


def told(step=None, phase=None, epoch=None, event=None):
    marks.append({k: v for k, v in (("step", step), ("phase", phase), ("epoch", epoch), ("event", event)) if v is not None})


def check(weights, steps, epochs, phases, checkpoints=0):
    """Trains with the callback and without: the weights are equal, and the marks are those of the loop."""
    global marks
    given, memdiag.mark = memdiag.mark, lambda *_, **__: marks.append("without the callback nothing is marked")
    without = weights(False)
    assert marks == [], marks
    memdiag.mark = told
    with_it = weights(True)
    memdiag.mark = given
    assert all(torch.equal(a, b) for a, b in zip(without, with_it, strict=True)), (without, with_it)
    assert [m["step"] for m in marks if "step" in m] == steps, marks
    assert [m["epoch"] for m in marks if "epoch" in m] == epochs, marks
    assert [m["event"] for m in marks if "event" in m] == ["checkpoint"] * checkpoints, marks
    said = [m["phase"] for m in marks if "phase" in m]
    said = [p for i, p in enumerate(said) if i == 0 or p != said[i - 1]]
    assert said == phases, said
    # Each step ends while the loop trains.
    phase = "train"
    for m in marks:
        phase = m.get("phase", phase)
        assert "step" not in m or phase == "train", marks


    # A second loop begins anew: its steps come after the first one's.
    marks, memdiag.mark = [], told
    weights(True)
    memdiag.mark = given
    assert [m["step"] for m in marks if "step" in m] == [s + len(steps) for s in steps], marks


def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))


def of_transformers():
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    rows = [{"input_ids": [1 + i, 2, 3], "labels": i % 2} for i in range(8)]

    def weights(calls):
        torch.manual_seed(1)
        model = BertForSequenceClassification(BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8))
        with tempfile.TemporaryDirectory() as folder:
            args = TrainingArguments(folder, num_train_epochs=2, per_device_train_batch_size=2, gradient_accumulation_steps=2, eval_strategy="epoch",
                                     save_strategy="epoch", report_to=[], disable_tqdm=True, use_cpu=True, logging_strategy="no")
            Trainer(model, args, train_dataset=rows, eval_dataset=rows, callbacks=[memdiag.callbacks.transformers()] if calls else []).train()
        return list(model.parameters())

    check(weights, [1, 2, 3, 4], [0, 1], ["train", "eval", "train", "eval", "train"], 2)


def of_lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def training_step(self, batch, _):
            return torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.net(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def weights(calls):
        module, loader = Module(), torch.utils.data.DataLoader(DATA, batch_size=2)
        with tempfile.TemporaryDirectory() as folder:
            trainer = lightning.Trainer(max_epochs=2, accumulate_grad_batches=2, accelerator="cpu", logger=False, enable_progress_bar=False, default_root_dir=folder,
                                        enable_model_summary=False, callbacks=[memdiag.callbacks.lightning()] if calls else [])
            trainer.fit(module, loader, loader)
        return list(module.parameters())

    check(weights, [1, 2, 3, 4], [0, 1], ["eval", "train", "eval", "train", "eval", "train"], 2)


def of_composer():
    from composer import Trainer
    from composer.models import ComposerModel

    class Model(ComposerModel):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, batch):
            return self.net(batch[0])

        def loss(self, outputs, batch):
            return torch.nn.functional.mse_loss(outputs, batch[1])

        def eval_forward(self, batch, outputs=None):
            return self(batch)

        def get_metrics(self, is_train=False):
            return {}

        def update_metric(self, batch, outputs, metric):
            pass

    def weights(calls):
        model, loader = Model(), torch.utils.data.DataLoader(DATA, batch_size=4)
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(model=model, optimizers=torch.optim.SGD(model.parameters(), lr=0.1), train_dataloader=loader, eval_dataloader=loader, max_duration="2ep",
                              save_folder=folder, device="cpu", progress_bar=False, callbacks=[memdiag.callbacks.composer()] if calls else [])
            trainer.fit()
            trainer.predict(loader)
            trainer.close()
        return list(model.parameters())

    check(weights, [1, 2, 3, 4], [0, 1], ["train", "eval", "train", "eval", "train", "eval", "train"], 2)


def of_stable_baselines3():
    import gymnasium
    from stable_baselines3 import PPO

    def weights(calls):
        model = PPO("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=16, batch_size=8, n_epochs=1, seed=1, policy_kwargs={"net_arch": [4]}, device="cpu")
        model.learn(48, callback=memdiag.callbacks.stable_baselines3() if calls else None)
        return list(model.policy.parameters())

    check(weights, [1, 2, 3], [], ["sample", "train", "sample", "train", "sample", "train"])


def of_ignite():
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer

    def weights(calls):
        model, loader = net(), torch.utils.data.DataLoader(DATA, batch_size=4)
        trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.functional.mse_loss)
        evaluator = create_supervised_evaluator(model)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda _: evaluator.run(loader))
        if calls:
            memdiag.callbacks.ignite(trainer, evaluator)
        trainer.run(loader, max_epochs=2)
        return list(model.parameters())

    check(weights, [1, 2, 3, 4], [0, 1], ["train", "eval", "train", "eval", "train"])


def of_accelerate():
    from accelerate import Accelerator

    def weights(calls):
        model, accelerator = net(), Accelerator(cpu=True)
        model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.utils.data.DataLoader(DATA, batch_size=4))
        if calls:
            memdiag.callbacks.accelerate(accelerator)
        with tempfile.TemporaryDirectory() as folder:
            for epoch in range(2):
                for x, y in loader:
                    accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
                    optimizer.step()
                    optimizer.zero_grad()
                accelerator.save_state("%s/%d" % (folder, epoch))
        return list(model.parameters())

    check(weights, [], [], [], 2)


def of_keras():
    import os

    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    def weights(calls):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu"), keras.layers.Dense(1)])
        model.compile(optimizer="sgd", loss="mse")
        x, y = (t.numpy() for t in DATA.tensors)
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, validation_data=(x, y), verbose=0, callbacks=[memdiag.callbacks.keras()] if calls else [])
        model.predict(x, batch_size=4, verbose=0, callbacks=[memdiag.callbacks.keras()] if calls else [])
        return [torch.as_tensor(w) for w in model.get_weights()]

    check(weights, [1, 2, 3, 4], [0, 1], ["train", "eval", "train", "eval", "train", "eval", "train"])


globals()["of_" + sys.argv[1]]()
