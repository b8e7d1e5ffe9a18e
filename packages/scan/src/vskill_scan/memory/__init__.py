"""What public marketplaces hold, as facts and hashes in one file of a release, and what a submission is told by it."""
