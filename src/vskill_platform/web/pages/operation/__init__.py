"""Pages of `operation`: what operators look after."""
