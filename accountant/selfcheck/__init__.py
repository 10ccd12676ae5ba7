"""Reference values from independent calculations, run through the accountant and through other libraries.

A case says what is asked (``kind``), of what (``params``), and what comes out (``value``, ``tolerance``). A law
computes a kind from params, for any params: the registry is :mod:`accountant.selfcheck.registry`, the laws are in
:mod:`accountant.selfcheck.laws`. Nothing here knows the name of a case that it passes.
"""
