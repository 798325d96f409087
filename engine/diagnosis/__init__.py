"""Recognises known mistakes: each rule reads program, outcome and trace and returns a Diagnosis.

May import trace, costs and the leaves. Rules are small files of this package; `diagnose` asks them
in an order in which the most specific speaks first.
"""

from engine.diagnosis import devices, failures, hangs, limits, network, partners, training
from engine.diagnosis.rule import Case, Rule
from engine.events import Diagnosis, Outcome
from engine.program import Program
from engine.trace import Trace

_RULES: tuple[Rule, ...] = (
    limits.engine_failed,
    limits.stopped_at_limit,
    hangs.never_joined,
    devices.cuda_on_cpu_ranks,
    training.one_sample_per_rank,
    training.forward_bypassed,
    network.no_network,
    partners.left_early,
    failures.not_python,
    failures.out_of_memory,
    failures.raised,
    failures.died,
)


def diagnose(program: Program, outcome: Outcome, trace: Trace) -> tuple[Diagnosis, ...]:
    """What the learner got wrong, most specific first; empty for a run without a known mistake."""
    case = Case(program=program, outcome=outcome, trace=trace)
    for rule in _RULES:
        found = rule(case)
        if found is not None:
            return (found,)
    return ()
