"""What tests of several folders share: environments, clocks and small skills."""
