"""Refusals of state dicts and checkpoints. May import the engine's leaves.

In the order in which they are asked: a more special one stands before a more general one.
"""

from engine.diagnosis.refused.refusal import Refusal

STATES: tuple[Refusal, ...] = (
    Refusal(
        code="state-dict-prefix",
        message=(
            r"Error\(s\) in loading state_dict[\s\S]*(Missing|"
            r"Unexpected) key\(s\)[\s\S]*\"module\."
        ),
    ),
    Refusal(
        code="state-dict-compiled",
        message=(r"Error\(s\) in loading state_dict[\s\S]*_orig_mod\."),
    ),
    Refusal(
        code="state-dict-kind",
        message=(
            r"Expected ShardedTensor, got|"
            r"Error\(s\) in loading state_dict[\s\S]*(ShardedTensor|local_shards|_flat_param|"
            r"_fsdp_wrapped_module)|Cannot load.*(sharded|local).*state|"
            r"expects .*StateDictType"
        ),
    ),
    Refusal(
        code="state-dict-other-model",
        message=(r"Error\(s\) in loading state_dict"),
    ),
    Refusal(
        code="checkpoint-missing-key",
        message=(r"Error: Missing key in checkpoint state_dict: (?P<name>[^\s{}]+?)\.?(\s|$)"),
    ),
    Refusal(
        code="checkpoint-shape",
        message=(
            r"Size mismatch between saved (?P<saved>\S+) and current: (?P<current>\S+)|"
            r"[Ss]ize mismatch.*saved"
        ),
    ),
    Refusal(
        code="checkpoint-not-there",
        message=(r"CheckpointException[\s\S]*(FileNotFoundError|No such file|\.metadata)"),
    ),
    Refusal(
        code="outside-the-folder",
        message=(r"Permission denied|Read-only file system"),
    ),
    Refusal(
        code="checkpoint-returns-nothing",
        message=(
            r"'NoneType' object is not (subscriptable|iterable)|"
            r"'NoneType' object has no attribute '(?P<name>items|keys|get)'"
        ),
        source=r"(dcp|checkpoint\w*)\.load\(",
    ),
    Refusal(
        code="checkpoint-wants-dict",
        message=(r"object has no attribute 'items'"),
        text=r"save",
    ),
    Refusal(
        code="checkpoint-is-folder",
        message=(r"Is a directory"),
    ),
    Refusal(
        code="file-not-there",
        message=(r"No such file or directory: '(?P<name>[^']*)'"),
    ),
    Refusal(
        code="state-dict-empty",
        message=(r"option indicates that model state_dict is required"),
    ),
    Refusal(
        code="weights-only",
        message=(r"Weights only load failed"),
    ),
)
