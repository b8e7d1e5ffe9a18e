"""All reads and writes of records, one file per kind; `submission_store` beside it holds the submissions'."""
