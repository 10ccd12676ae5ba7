"""Faults that an audit must catch, one per file. Only defenses whose names begin with faulty_ read them."""
