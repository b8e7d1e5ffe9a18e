"""Rules of `operation`: what operators look after."""
