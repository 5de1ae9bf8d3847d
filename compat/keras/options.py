"""Parameters of Keras of which only some values are supported: other values raise an error, and are never ignored."""

from __future__ import annotations

from typing import Any

from adjit.ir.errors import UnsupportedError

ONLY: dict[str, tuple[tuple[Any, ...], str]] = {  # name of a parameter: supported values, and what to do instead of others
    "data_format": ((None, "channels_last"), "channels are the last axis: transpose the inputs"),
    "autocast": ((True, False), ""),
    "use_cudnn": (("auto", True, False), ""),
    "lora_rank": ((None,), "write the adapter as a layer of your own"),
    "lora_alpha": ((None,), "write the adapter as a layer of your own"),
    "quantization_config": ((None,), "weights are floats"),
    "synchronized": ((False,), "statistics are those of a process"),
    "renorm": ((False,), "leave it out"),
    "renorm_clipping": ((None,), "leave it out"),
    "renorm_momentum": ((0.99,), "leave it out"),
    "attention_axes": ((None,), "attention is along the second axis: move the axes"),
    "sliding_window": ((None,), "pass attention_mask"),
    "flash_attention": ((None, False, True), ""),
    "use_gate": ((False,), "multiply the result by a layer of your own"),
    "sparse": ((None, False), "tensors are dense"),
    "ragged": ((None, False), "pad the rows to one length"),
    "optional": ((False,), "make two models"),
    "interpolation": (("nearest",), "resize in a layer of your own"),
}


def accepted(owner: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options without those of `ONLY`, whose values are checked."""
    out = {}
    for name, value in options.items():
        if name not in ONLY:
            out[name] = value
            continue
        known, instead = ONLY[name]
        if not any(value is each or value == each for each in known):
            raise UnsupportedError(f"{owner}: {name}={value!r} is out of the scope of adjit.tf, which has {known[-1]!r}; {instead}")
    return out
