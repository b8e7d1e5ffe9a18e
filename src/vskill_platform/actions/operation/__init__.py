"""Actions of `operation`: what operators look after."""
