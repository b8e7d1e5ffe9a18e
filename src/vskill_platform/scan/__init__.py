"""Looking at a skill's content: tier 1 static, tier 2 judge."""
