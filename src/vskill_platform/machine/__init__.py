"""Resources of this machine and process: child processes, threads, disk space, concurrency slots, and caches."""
