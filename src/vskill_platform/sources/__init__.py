"""Where the files of a submission come from: one contract, one file per kind of source."""
