"""What operators see of a process: log lines, metrics and, as an extra, traces."""
