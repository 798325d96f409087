"""The rule for simulated programs that ask for what tensors without data do not have."""

import re

from engine.diagnosis.rule import Case, say
from engine.events import Diagnosis

_NO_DATA = re.compile(
    r"but its data is not allocated yet|attempted to run this operator with Meta tensors|"
    r"Cannot access data pointer of Tensor|not supported for tensor subclasses"
)
"""What torch's own code says where it has no kernel for tensors without data, or reads them."""
_MAX_CALL = 120


def cannot_simulate(case: Case) -> Diagnosis | None:
    """The program read values of a tensor, or called what cannot do without them."""
    failure, end = case.first_failure, case.first_failed
    if case.program.simulated_ranks is None or failure is None or end is None:
        return None
    if failure.type == "CannotSimulate":
        read = next((o for o in case.trace.observations if o.name == "cannot-simulate"), None)
        line = read.line if read else failure.line
        call = read.args.get("call") if read else None
        code = "cannot-simulate"
    elif _NO_DATA.search(failure.message):
        line, call, code = failure.line, None, "cannot-simulate-call"
    else:
        return None
    if line is None:
        return None
    shown = call if isinstance(call, str) and call else case.line_text(line)[:_MAX_CALL]
    return say(code, {"line": line, "call": shown}, line=line, rank=end.rank)
