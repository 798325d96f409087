"""What training costs in closed form: bytes held, elements sent; and a trace against it.

The formulas may import engine.facts only; `steps` and `compare_*` also import engine.trace. Every
formula names its source. Nothing here imports torch, and nothing here is measured.
"""
