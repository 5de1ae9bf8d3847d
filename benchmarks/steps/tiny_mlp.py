"""tiny_mlp: 5-10-2 ReLU MLP, batch 32, mean squared error, one Adam step."""

import sys
from pathlib import Path

from common import Prog

sys.path.append(str(Path(__file__).parent))
from adam_mlp import Trainer


def adjit_step(inputs):
    trainer = Trainer(inputs["ws"], inputs["bs"], inputs["x"], inputs["y"], classify=inputs["kind"] == "xent")
    return Prog(trainer.step, trainer.outputs, trainer.reset)
