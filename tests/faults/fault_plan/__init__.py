"""Fault tests, and the rules that the service must keep during faults.

Each module named after a fault has a function that inflicts it many times, on its own processes,
and returns `Figures`: how often and where it struck, the outcome of jobs, and every broken rule.
The tests of this folder run a short form of each; ``make faults`` runs the full forms,
``python -m fault_plan --help`` shows how to run one.

A `Ledger`, a file outside the service, records requests and responses. Afterwards `Checker`
compares it with the database, the artifacts and live predictions.
"""
