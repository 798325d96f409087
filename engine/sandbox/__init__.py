"""Isolation of one run on Linux: namespaces, a curated root, Landlock, seccomp, limits, tiers.

May import the standard library and engine.{errors,program}. The order of the layers is that of
`engine.sandbox.launch` (trusted side) and `engine.sandbox.lock` (inside, before learner code).
"""
