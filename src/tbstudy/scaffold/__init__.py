"""A new domain of one's own, written as a dataset that works at once."""
