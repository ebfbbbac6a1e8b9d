"""Transactions of one producer: the machine, what it asks for, and the blocks that applications use."""
