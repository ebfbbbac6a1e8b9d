"""Client side of the SASL mechanisms.

mechanism     what a connection asks of each of them
"""
