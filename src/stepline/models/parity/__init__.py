"""Parity of heads with their released networks, one module per head; see ``stepline.backbones.parity``."""
