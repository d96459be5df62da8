"""Callbacks that report the steps, epochs, phases and checkpoints of a training loop to the recorder. Each takes one line:

    transformers.Trainer(…, callbacks=[memdiag.callbacks.transformers()])
    lightning.Trainer(…, callbacks=[memdiag.callbacks.lightning()])
    composer.Trainer(…, callbacks=[memdiag.callbacks.composer()])
    model.learn(…, callback=memdiag.callbacks.stable_baselines3())
    memdiag.callbacks.ignite(trainer, evaluator)
    memdiag.callbacks.accelerate(accelerator)
    model.fit(…, callbacks=[memdiag.callbacks.keras()])

after `import memdiag.callbacks`. Without the recorder they do nothing. Each function imports its library.
"""

import sys
from typing import Any

import memdiag


class _Steps:
    """Counts the steps of all loops in the process. A loop that begins goes on from the last step, so that steps never go back."""

    def __init__(self) -> None:
        self.last = self.before = 0

    def begin(self, count: int = 0) -> None:
        """A loop begins. Its library has counted so many steps already, such as those of a checkpoint."""
        self.before = max(0, self.last - count)

    def mark(self, count: int) -> None:
        """The library has counted so many steps of the loop."""
        self.last = max(self.last, self.before + count)
        memdiag.mark(step=self.last)


_steps = _Steps()


def transformers() -> Any:
    """For Hugging Face's Trainer: marks optimizer steps, epochs, evaluations and checkpoints."""
    from transformers import TrainerCallback

    class Callback(TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            _steps.begin(state.global_step)
            memdiag.mark(phase="train")

        def on_epoch_begin(self, args, state, control, **_):
            memdiag.mark(epoch=int(state.epoch or 0))

        def on_step_end(self, args, state, control, **_):
            _steps.mark(state.global_step)

        def on_prediction_step(self, args, state, control, **_):
            memdiag.mark(phase="eval")

        def on_evaluate(self, args, state, control, **_):
            memdiag.mark(phase="train")

        on_predict = on_evaluate

        def on_save(self, args, state, control, **_):
            memdiag.mark(event="checkpoint")

    return Callback()


def lightning() -> Any:
    """For Lightning's Trainer: marks batches in which an optimizer stepped, epochs, evaluations and checkpoints."""
    if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
        from pytorch_lightning import Callback as Base
    else:
        from lightning.pytorch import Callback as Base

    class Callback(Base):
        def __init__(self):
            self.step = 0

        def on_train_start(self, trainer, module):
            self.step = trainer.global_step
            _steps.begin(self.step)

        def on_train_epoch_start(self, trainer, module):
            memdiag.mark(phase="train", epoch=trainer.current_epoch)

        def on_train_batch_end(self, trainer, *_):
            if trainer.global_step != self.step:
                self.step = trainer.global_step
                _steps.mark(self.step)

        def on_validation_start(self, trainer, module):
            memdiag.mark(phase="eval")

        def on_validation_end(self, trainer, module):
            memdiag.mark(phase="train")

        on_test_start = on_predict_start = on_validation_start
        on_test_end = on_predict_end = on_validation_end

        def on_save_checkpoint(self, trainer, module, checkpoint):
            memdiag.mark(event="checkpoint")

    return Callback()


def composer() -> Any:
    """For Composer's Trainer: marks batches in which its optimizers stepped, epochs, evaluations, predictions and checkpoints."""
    from composer import Callback as Base

    class Callback(Base):
        def fit_start(self, state, logger):
            _steps.begin(state.timestamp.batch.value)

        def epoch_start(self, state, logger):
            memdiag.mark(phase="train", epoch=state.timestamp.epoch.value)

        def batch_end(self, state, logger):
            _steps.mark(state.timestamp.batch.value)

        def eval_start(self, state, logger):
            memdiag.mark(phase="eval")

        def eval_end(self, state, logger):
            memdiag.mark(phase="train")

        predict_start, predict_end = eval_start, eval_end

        def state_dict(self):  # no event announces a checkpoint, but each has the state of all callbacks
            memdiag.mark(event="checkpoint")
            return {}

    return Callback()


def stable_baselines3() -> Any:
    """For the algorithms of Stable-Baselines3. A step is a rollout with the training after it; the phases are sample and train.

    Evaluations of an EvalCallback belong to the phase sample. Checkpoints need mark(event="checkpoint").
    """
    from stable_baselines3.common.callbacks import BaseCallback

    class Callback(BaseCallback):
        rollouts = 0

        def _on_training_start(self):
            self.rollouts = 0
            _steps.begin()

        def _on_rollout_start(self):
            if self.rollouts:
                _steps.mark(self.rollouts)
            self.rollouts += 1
            memdiag.mark(phase="sample")

        def _on_rollout_end(self):
            memdiag.mark(phase="train")

        def _on_training_end(self):
            _steps.mark(self.rollouts)

        def _on_step(self):
            return True

    return Callback()


def ignite(trainer: Any, *evaluators: Any) -> None:
    """For Ignite's engines: marks iterations and epochs of the trainer, and the runs of evaluators. Checkpoints need
    mark(event="checkpoint")."""
    from ignite.engine import Events

    trainer.add_event_handler(Events.STARTED, lambda engine: _steps.begin(engine.state.iteration))
    trainer.add_event_handler(Events.EPOCH_STARTED, lambda engine: memdiag.mark(phase="train", epoch=engine.state.epoch - 1))
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: _steps.mark(engine.state.iteration))
    for evaluator in evaluators:
        evaluator.add_event_handler(Events.STARTED, lambda engine: memdiag.mark(phase="eval"))
        evaluator.add_event_handler(Events.COMPLETED, lambda engine: memdiag.mark(phase="train"))


def accelerate(accelerator: Any) -> None:
    """For a loop with Accelerate: marks the checkpoints of save_state. Its optimizers are PyTorch's, whose steps need no callback."""
    accelerator.register_save_state_pre_hook(lambda models, weights, folder: memdiag.mark(event="checkpoint"))


def keras() -> Any:
    """For Keras with the backend torch: marks batches, epochs, evaluations and predictions. Checkpoints need mark(event="checkpoint")."""
    from keras.callbacks import Callback as Base

    class Callback(Base):
        steps = 0

        def on_train_begin(self, logs=None):
            self.steps = 0
            _steps.begin()

        def on_epoch_begin(self, epoch, logs=None):
            memdiag.mark(phase="train", epoch=epoch)

        def on_train_batch_end(self, batch, logs=None):
            self.steps += 1
            _steps.mark(self.steps)

        def on_test_begin(self, logs=None):
            memdiag.mark(phase="eval")

        def on_test_end(self, logs=None):
            memdiag.mark(phase="train")

        on_predict_begin, on_predict_end = on_test_begin, on_test_end

    return Callback()
