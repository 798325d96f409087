"""The engine runs a learner's program on real ranks in a sandbox and says what happened.

It never imports app.
"""
