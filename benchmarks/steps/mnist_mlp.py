"""mnist_mlp: 784-512-256-10 ReLU MLP, batch 128, softmax cross-entropy, one Adam step."""

import sys
from pathlib import Path

from common import Prog

sys.path.append(str(Path(__file__).parent))
from adam_mlp import Trainer


def adjit_step(inputs):
    trainer = Trainer(inputs["ws"], inputs["bs"], inputs["x"], inputs["y"], classify=inputs["kind"] == "xent")
    return Prog(trainer.step, trainer.outputs, trainer.reset)
