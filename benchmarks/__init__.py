"""Speed and tightness against other tools, measured side by side under one protocol."""
