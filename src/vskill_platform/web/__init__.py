"""The web side: reads what the stores hold and shows it to clients and operators. No worker need be alive."""
