"""The benchmarks behind `academy bench`: each prints a table for people, or one JSON object.

May import everything below the command line. Ratios come from the same run on the same machine.
"""

from app.bench.command import bench_app

__all__ = ["bench_app"]
