"""The trusted watcher of one run, on the host's side of the walls.

May import program, events, wire, messages and sandbox; never torch. It is a fork of the zygote that
parks a sandbox, waits for a program, hands it to the ranks, turns what they write into events, and
stops the run at its limits. It believes nothing that a rank says about anything but itself.
"""
