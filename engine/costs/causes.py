"""Why a real run differs from the closed form: the names of all known causes.

May import the standard library only. docs/costs.md says each in words.
"""

from typing import Literal

Cause = Literal[
    "padding",
    "root-kept",
    "bucket-order",
    "unused-parameters",
    "buffers",
    "sync-batch-norm",
    "bucket-copies",
    "step-counters",
    "whole-tensors",
    "uneven-shards",
    "resharded-after-backward",
    "shard-beside-whole",
    "shard-after-forward",
    "not-stepped",
]
