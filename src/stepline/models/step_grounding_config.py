from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StepGroundingConfig:
    """MT+BCE; see ``stepline.models.step_grounding``. The defaults are those of the released TAN, except ``positions``.

    feature_dim, text_dim: sizes of rows and texts. width: a multiple of heads. joint_layers: the number of blocks.
    positions: the length of the positional tables of the video and of texts: 1200 by default, the longest video of
    HT-Step's paper in seconds; 1024 if training starts from a network that was trained on narrations.
    """

    feature_dim: int = 1024
    text_dim: int = 512
    width: int = 512
    heads: int = 8
    joint_layers: int = 6
    positions: int = 1200

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width is {self.width}, not a multiple of {self.heads} heads")
