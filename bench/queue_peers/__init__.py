"""Queues beside each other: one small module for each, all with the same two functions.

`fill(order)` queues that many jobs, and `work(order, work)` runs the queue's own worker on them until the
process ends. Each measurement is a process of its own (`protocol`), started by `runner`; `servers` has what the queues
need beneath them. Other people's queues live in an environment of their own, so nothing here but `ours` may import
anything outside the standard library and the queue that it is about.
"""
