"""Telling others what was decided: notices made of histories, delivered by signed webhooks and by mail."""
