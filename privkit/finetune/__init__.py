"""The gradient lab: a transformer, tuned by many clients with adapters or low-rank maps, who send gradients.

:func:`privkit.finetune.loop.train` writes an ordinary run directory; attacks get what
:func:`privkit.finetune.view.view` makes of it.

==============================  =======================================================================================
what comes                      what happens
==============================  =======================================================================================
an empty text                   refused, with its place: it has no token of its own
a text of one token             is a text like any other
a text that is too long         cut at ``max_length`` tokens; more than the model reads are refused
a label beyond the head         refused
no records in a Poisson batch   a gradient of zeros, or under DP-SGD of noise alone
a gradient of zeros             sent as it is: LoRA's A in the first round, whose B is 0; its rank is 0
a unit that is off              a row of zeros in the gradient
rank 0 of FISGuard              refused; so is a rank that is not below the width of an input, or above the directions
                                that public records show
rank(G_U) < r                   sent, lowered or replaced by zeros, as ``rank_audit`` says
a number that is not finite     training ends (``DivergedError``) with the rounds before it committed; a message that
                                holds one cannot be made, and weights that give one are refused
a missing or extra tensor,      refused with its name: by the server, and whenever weights are computed again
another shape, mixed types
a map used twice in a pass      refused: blocks that share weights have no one input
==============================  =======================================================================================
"""
