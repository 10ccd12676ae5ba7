"""How the records of a class become prototypes: one plug-in per file."""
