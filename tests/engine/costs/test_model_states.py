"""Bytes of model states per rank: the published table, precisions, optimizers."""

from typing import get_args

import pytest

from engine.costs.precision import (
    FP32_ADAM,
    FP32_MOMENTUM,
    FP32_SGD,
    MIXED_ADAM,
    OptimizerName,
    Precision,
    mixed,
    optimizer,
    uniform,
)
from engine.costs.zero import Stage, model_states

# Table 1 of arXiv 1910.02054 in GB as printed: per number of ranks, stages 1 / 2 / 3 of
# 7.5 B, 128 B and 1 T parameters. The paper truncates some cells.
PSI = (7_500_000_000, 128_000_000_000, 1_000_000_000_000)
TABLE = {
    1: ("120 120 120", "2048 2048 2048", "16000 16000 16000"),
    4: ("52.5 41.3 30", "896 704 512", "7000 5500 4000"),
    16: ("35.6 21.6 7.5", "608 368 128", "4750 2875 1000"),
    64: ("31.4 16.6 1.88", "536 284 32", "4187 2218 250"),
    256: ("30.4 15.4 0.47", "518 263 8", "4046 2054 62.5"),
    1024: ("30.1 15.1 0.12", "513 257 2", "4011 2013 15.6"),
}
STAGES: tuple[Stage, ...] = (1, 2, 3)
CELLS = [
    (num_ranks, num_parameters, stage, printed)
    for num_ranks, columns in TABLE.items()
    for num_parameters, column in zip(PSI, columns, strict=True)
    for stage, printed in zip(STAGES, column.split(), strict=True)
]


def test_table_has_54_cells() -> None:
    assert len(CELLS) == 54


@pytest.mark.parametrize(("num_ranks", "num_parameters", "stage", "printed"), CELLS)
def test_cell_of_the_published_table(
    num_ranks: int, num_parameters: int, stage: Stage, printed: str
) -> None:
    states = model_states(
        num_parameters=num_parameters, num_ranks=num_ranks, stage=stage, precision=MIXED_ADAM
    )
    last_digit = 10 ** -len(printed.partition(".")[2])
    assert abs(states.total_bytes / 10**9 - float(printed)) < last_digit


def test_stage_0_keeps_everything_on_every_rank() -> None:
    states = model_states(num_parameters=PSI[0], num_ranks=64, stage=0, precision=MIXED_ADAM)
    assert states.total_bytes == 16 * PSI[0]


@pytest.mark.parametrize(
    ("stage", "parameter", "gradient", "kept"),
    [(0, 1, 1, 2), (1, 1, 1, 0.5), (2, 1, 0.25, 0.5), (3, 0.25, 0.25, 0.5)],
)
def test_fp32_adam_on_4_ranks_in_units_of_4_psi(
    stage: Stage, parameter: float, gradient: float, kept: float
) -> None:
    psi = 33_280
    states = model_states(num_parameters=psi, num_ranks=4, stage=stage, precision=FP32_ADAM)
    parts = (states.parameter_bytes, states.gradient_bytes, states.optimizer_bytes)
    assert [part / (4 * psi) for part in parts] == [parameter, gradient, kept]


@pytest.mark.parametrize(
    ("made", "preset"),
    [
        (mixed("Adam"), MIXED_ADAM),
        (uniform("Adam"), FP32_ADAM),
        (uniform("SGD"), FP32_SGD),
        (uniform("SGD-momentum"), FP32_MOMENTUM),
        (
            uniform("Adam", element_bytes=2),
            Precision(parameter_bytes=2, gradient_bytes=2, optimizer_bytes=4),
        ),
    ],
)
def test_precision_of_an_optimizer(made: Precision, preset: Precision) -> None:
    assert made == preset


@pytest.mark.parametrize("name", get_args(OptimizerName))
def test_optimizer_keeps_what_torch_keeps(name: OptimizerName) -> None:
    import torch

    parameter = torch.nn.Parameter(torch.zeros(3, 5))
    parameter.grad = torch.ones_like(parameter)
    made = {
        "SGD": lambda: torch.optim.SGD([parameter]),
        "SGD-momentum": lambda: torch.optim.SGD([parameter], momentum=0.9),
        "Adagrad": lambda: torch.optim.Adagrad([parameter]),
        "RMSprop": lambda: torch.optim.RMSprop([parameter]),
        "Adam": lambda: torch.optim.AdamW([parameter]),
        "Adam-amsgrad": lambda: torch.optim.Adam([parameter], amsgrad=True),
    }[name]()  # type: ignore[no-untyped-call]
    made.step()
    state = [value for value in made.state[parameter].values() if isinstance(value, torch.Tensor)]
    kept = optimizer(name)
    assert sum(value.numel() == 15 for value in state) == kept.num_states
    assert [value.nbytes for value in state if value.dim() == 0] == [4] * kept.has_step


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        (
            "num_parameters",
            lambda: model_states(num_parameters=-1, num_ranks=1, stage=1, precision=FP32_SGD),
        ),
        (
            "num_ranks",
            lambda: model_states(num_parameters=1, num_ranks=0, stage=1, precision=FP32_SGD),
        ),
        (
            "stage",
            lambda: model_states(num_parameters=1, num_ranks=1, stage=4, precision=FP32_SGD),  # type: ignore[arg-type]
        ),
        ("optimizer", lambda: uniform("Lion")),  # type: ignore[arg-type]
        ("element_bytes", lambda: uniform("Adam", element_bytes=0)),
        ("low_bytes", lambda: mixed("Adam", low_bytes=0)),
        (
            "gradient_bytes",
            lambda: Precision(parameter_bytes=4, gradient_bytes=-4, optimizer_bytes=0),
        ),
    ],
)
def test_bad_argument_is_named(argument: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=f"^{argument} "):
        call()
