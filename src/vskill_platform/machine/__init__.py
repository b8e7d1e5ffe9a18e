"""What this machine and process give: child processes, threads, room on disk, slots, and what was read before."""
