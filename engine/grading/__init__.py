"""Judges a run with a check that the run never sees.

The way through it: `exporting` (in a rank: values of its variables, over a pipe of its own) ->
`frames` (their bytes) -> `received` (in the supervisor: bounded, decoded strictly) -> `judging` (in
the executor: `crosschecks` of the trace, then the check as a program of its own) -> `evidence`
(what that is told of the run) -> `checking` (in a fresh process that ran no learner code).

May import the leaves, wire, trace and diagnosis' pairing of calls; torch in `exporting`,
`tensors`, `judged` and `checking` only, which no process but a rank and its parent imports.
"""
