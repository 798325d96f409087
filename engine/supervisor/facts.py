"""Makes events of the reports that become one each. May import events and reports."""

from dataclasses import dataclass

from engine.events import Allocation, Memory, Observation, Peak, Statistic, Verdict
from engine.reports import (
    AllocationReport,
    MemoryReport,
    ObservationReport,
    PeakReport,
    StatisticReport,
    VerdictReport,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the supervisor gives an event: its rank, number and time since the run's start."""

    rank: int
    seq: int
    at_ns: int


PlainReport = (
    StatisticReport
    | MemoryReport
    | PeakReport
    | AllocationReport
    | ObservationReport
    | VerdictReport
)
PlainEvent = Statistic | Memory | Peak | Allocation | Observation | Verdict


def stamped(report: PlainReport, stamp: Stamp) -> PlainEvent:
    """The event of a report."""
    match report:
        case StatisticReport():
            return _statistic(report, stamp)
        case MemoryReport():
            return _memory(report, stamp)
        case PeakReport():
            return _peak(report, stamp)
        case AllocationReport():
            return _allocation(report, stamp)
        case ObservationReport():
            return Observation(
                rank=stamp.rank,
                seq=stamp.seq,
                at_ns=stamp.at_ns,
                name=report.name,
                args=report.args,
                line=report.line,
            )
        case VerdictReport():
            return _verdict(report, stamp)


def _verdict(report: VerdictReport, stamp: Stamp) -> Verdict:
    """The event of a check's report."""
    return Verdict(
        rank=stamp.rank,
        seq=stamp.seq,
        at_ns=stamp.at_ns,
        is_passed=report.is_passed,
        results=report.results,
        problem=report.problem,
    )


def _statistic(report: StatisticReport, stamp: Stamp) -> Statistic:
    return Statistic(
        rank=stamp.rank,
        seq=stamp.seq,
        at_ns=stamp.at_ns,
        module=report.module,
        name=report.name,
        scope=report.scope,
        values=report.values,
        phase=report.phase,
        line=report.line,
    )


def _memory(report: MemoryReport, stamp: Stamp) -> Memory:
    return Memory(
        rank=stamp.rank,
        seq=stamp.seq,
        at_ns=stamp.at_ns,
        parameter_bytes=report.parameter_bytes,
        gradient_bytes=report.gradient_bytes,
        optimizer_bytes=report.optimizer_bytes,
        activation_bytes=report.activation_bytes,
        buffer_bytes=report.buffer_bytes,
        communication_bytes=report.communication_bytes,
        other_bytes=report.other_bytes,
        peak_bytes=report.peak_bytes,
        phase=report.phase,
        module=report.module,
        line=report.line,
        allocated_bytes=report.allocated_bytes,
        reserved_bytes=report.reserved_bytes,
    )


def _peak(report: PeakReport, stamp: Stamp) -> Peak:
    return Peak(
        rank=stamp.rank,
        seq=stamp.seq,
        at_ns=stamp.at_ns,
        parameter_bytes=report.parameter_bytes,
        gradient_bytes=report.gradient_bytes,
        optimizer_bytes=report.optimizer_bytes,
        activation_bytes=report.activation_bytes,
        buffer_bytes=report.buffer_bytes,
        communication_bytes=report.communication_bytes,
        other_bytes=report.other_bytes,
        peak_bytes=report.peak_bytes,
        phase=report.phase,
        module=report.module,
        line=report.line,
        allocated_bytes=report.allocated_bytes,
        reserved_bytes=report.reserved_bytes,
        held=report.held,
    )


def _allocation(report: AllocationReport, stamp: Stamp) -> Allocation:
    return Allocation(
        rank=stamp.rank,
        seq=stamp.seq,
        at_ns=stamp.at_ns,
        action=report.action,
        storage=report.storage,
        num_bytes=report.num_bytes,
        category=report.category,
        op=report.op,
        shape=report.shape,
        dtype=report.dtype,
        phase=report.phase,
        module=report.module,
        line=report.line,
    )
