"""The gradient lab: a transformer, tuned by many clients with adapters or low-rank maps, who send gradients.

It writes an ordinary run directory. Attacks get what :func:`privkit.finetune.view.view` makes of it.
"""
