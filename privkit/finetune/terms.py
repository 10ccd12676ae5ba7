"""How clients train and what they send: the terms that a defense has to agree with."""

from enum import StrEnum

from pydantic import Field

from privkit import plug


class Optimizer(StrEnum):
    """Which steps are taken."""

    ADAM = "adam"
    SGD = "sgd"


class UploadKind(StrEnum):
    """What a client sends after its local steps."""

    GRADIENT = "gradient"
    """The mean gradient of its batch; the server's optimiser takes the step."""
    DELTA = "delta"
    """What its own optimiser, new in every round, added to the weights."""
    WEIGHTS = "weights"
    """The weights after that."""


class Transport(StrEnum):
    """Numbers that uploads are rounded to before they are sent."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"


class Sampling(StrEnum):
    """How a batch is drawn from a client's records."""

    FIXED = "fixed"
    """So many of them, none twice; all of them where there are fewer."""
    POISSON = "poisson"
    """Each of them independently, so many on average; a batch may be empty."""


class Aggregation(StrEnum):
    """How the server weighs clients."""

    SIZE = "size"
    """By their numbers of records (FedAvg)."""
    EQUAL = "equal"


class Terms(plug.Settings):
    """One round: who trains how, and what is sent in which numbers."""

    rounds: int = Field(default=50, ge=1, description="communication rounds; all clients take part in each")
    batch: int = Field(
        default=16, ge=1, description="records of a client's batch, on average if sampling is poisson"
    )
    local_steps: int = Field(
        default=1, ge=1, description="steps that a client takes in a round, each on a new batch"
    )
    optimizer: Optimizer = Field(
        default=Optimizer.ADAM, description="adam or sgd: of the server for gradients, else of each client"
    )
    learning_rate: float = Field(default=2e-4, gt=0, description="of everything but the head")
    head_learning_rate: float = Field(default=5e-4, gt=0, description="of the head; SST-5 is run with 1e-3")
    clip: float | None = Field(
        default=1.0,
        gt=0,
        description="largest norm of a step's gradient over all parameters; null: not clipped",
    )
    upload: UploadKind = Field(default=UploadKind.GRADIENT, description="gradient, delta or weights")
    transport: Transport = Field(
        default=Transport.FP32,
        description="numbers of an upload: fp32, fp16, bf16 or int8 (one scale per tensor)",
    )
    sampling: Sampling = Field(default=Sampling.FIXED, description="fixed or poisson")
    aggregation: Aggregation = Field(default=Aggregation.SIZE, description="size (FedAvg) or equal")
    secure_aggregation: bool = Field(
        default=False,
        description="whether the server sees nothing but the weighted mean of all uploads of a round",
    )
