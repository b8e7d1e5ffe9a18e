"""Actions of `skills`: what is published: skills, their versions, names, lists and search."""
