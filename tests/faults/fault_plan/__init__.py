"""Faults on purpose, and what the service must keep to through all of them.

Each module named after a fault has a function that inflicts it, many times, on processes of its
own, and returns `Figures`: how often it struck, and where, what became of the jobs, and every rule
that was broken. The tests of this folder run a short form of each; ``make faults`` runs the full
forms, ``python -m fault_plan --help`` any of them.

What is asked of the service and what it answers is kept in a `Ledger`, a file that it knows nothing
of; afterwards `Checker` compares that with the database, the artifacts and the live answers.
"""
