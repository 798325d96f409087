"""Recognises known mistakes: each rule reads program, outcome and trace and returns a Diagnosis.

May import trace, costs and the leaves. Rules are small files of this package; `diagnose` asks them
in an order in which the most specific speaks first.
"""

from engine.diagnosis import (
    conversion,
    devices,
    failures,
    fenced,
    hangs,
    limits,
    manual,
    mismatches,
    modes,
    network,
    optimizers,
    partners,
    replicas,
    samplers,
    saving,
    sends,
    shards,
    simulation,
    training,
)
from engine.diagnosis.refused import refused
from engine.diagnosis.rule import Case, Mistakes, Rule
from engine.events import Diagnosis, Outcome
from engine.program import Program
from engine.trace import Trace

_RULES: tuple[Rule, ...] = (
    limits.engine_failed,
    fenced.not_within_a_fence,
    limits.stopped_at_limit,
    limits.failed_at_limit,
    simulation.cannot_simulate,
    mismatches.brought_unlike,
    sends.peer_not_there,
    sends.sizes_differ,
    hangs.never_joined,
    devices.cuda_on_cpu_ranks,
    devices.amiss_on_gpu_ranks,
    training.one_sample_per_rank,
    training.forward_bypassed,
    refused,
    network.no_network,
    partners.left_behind,
    failures.not_python,
    failures.out_of_memory,
    failures.raised,
    failures.died,
    mismatches.mixed_silently,
)
_SILENT: tuple[Mistakes, ...] = (
    optimizers.made_before_sharding,
    optimizers.gradients_dropped,
    optimizers.holds_others,
    optimizers.layers_unregistered,
    optimizers.never_cleared,
    replicas.drifted,
    replicas.stepped_by_some,
    replicas.waiting_gradients,
    replicas.unsharded_beside_shards,
    replicas.ignored_but_trained,
    replicas.zero_on_own_gradients,
    manual.reduced_wrongly,
    manual.reduced_twice,
    manual.reduced_in_graph,
    manual.metric_lost,
    manual.metric_summed_again,
    manual.never_waited,
    manual.outputs_aliased,
    shards.own_initial_values,
    shards.untied,
    shards.clipped_by_own_norm,
    shards.clipped_at_the_wrong_time,
    saving.saved_parts,
    saving.saved_old_state,
    conversion.conversion_unused,
    conversion.alone_in_group,
    modes.trained_in_evaluation,
    modes.nothing_loaded,
    samplers.order_repeats,
    samplers.orders_differ,
    samplers.same_data_everywhere,
)
"""Rules for programs that run to their end and are wrong all the same."""
_MAX_SILENT = 4


def diagnose(program: Program, outcome: Outcome, trace: Trace) -> tuple[Diagnosis, ...]:
    """What the learner got wrong, most specific first; empty for a run without a known mistake."""
    case = Case(program=program, outcome=outcome, trace=trace)
    for rule in _RULES:
        found = rule(case)
        if found is not None:
            return (found,)
    if outcome.status != "ok":
        return ()
    return tuple(d for rule in _SILENT for d in rule(case))[:_MAX_SILENT]
