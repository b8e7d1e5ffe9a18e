"""Stages of the way of a skill's content: published, judged again, its source looked at again."""
