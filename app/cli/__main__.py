"""`python -m app.cli`: the `academy` command where its script is not installed."""

from app.cli import main

main()
