"""Commands of `operation`: what operators look after."""
