"""Rules for optimizers whose steps change nothing: what they hold, or find, is not the model's."""

from collections.abc import Iterator

from engine.diagnosis.observed import observed, text, whole
from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis
from engine.facts import Args


def made_before_sharding(case: Case) -> Iterator[Diagnosis]:
    """It holds parameters that fully_shard or FSDP1 has replaced since."""
    for seen in observed(case, "stale-parameters")[:1]:
        args: Args = {
            "line": whole(seen, "optimizer_line"),
            "shard_line": whole(seen, "shard_line"),
            "by": text(seen, "by"),
            "num_stale": whole(seen, "num_stale"),
            "num_parameters": whole(seen, "num_parameters"),
        }
        yield say("optimizer-before-shard", args, line=whole(seen, "optimizer_line"))


def gradients_dropped(case: Case) -> Iterator[Diagnosis]:
    """zero_grad stands between backward and step."""
    for seen in observed(case, "dropped-gradients")[:1]:
        args: Args = {"line": seen.line, "zero_line": whole(seen, "zero_line")}
        yield say("gradients-dropped", args, line=whole(seen, "zero_line"))


def layers_unregistered(case: Case) -> Iterator[Diagnosis]:
    """Layers in a plain list: the model that holds it does not have their parameters."""
    for seen in observed(case, "unregistered")[:1]:
        args: Args = {
            "line": seen.line,
            "layer": text(seen, "layer"),
            "num": whole(seen, "num"),
        }
        yield say("layers-unregistered", args, line=seen.line)


def never_cleared(case: Case) -> Iterator[Diagnosis]:
    """Every backward adds to the gradients that the steps before have used."""
    for seen in observed(case, "uncleared")[:1]:
        yield say("gradients-never-cleared", {"line": seen.line}, line=seen.line)


def holds_others(case: Case) -> Iterator[Diagnosis]:
    """Its parameters never have a gradient; the model's do, and no optimizer has them."""
    if observed(case, "stale-parameters"):
        return
    for seen in observed(case, "idle-parameters")[:1]:
        args: Args = {
            "line": whole(seen, "optimizer_line"),
            "num_idle": whole(seen, "num_idle"),
            "num_parameters": whole(seen, "num_parameters"),
            "num_unheld": whole(seen, "num_unheld"),
        }
        yield say("optimizer-other-parameters", args, line=whole(seen, "optimizer_line"))
