"""Records of `operation`: what operators look after."""
