"""What people and programs may do here: one function per action, called by every entry point."""
