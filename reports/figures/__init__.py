"""One figure per file: from findings to an SVG that reads on white and on dark, without pyplot's state."""
