"""Heads against their released networks: a module for each; see ``stepline.backbones.parity``."""
