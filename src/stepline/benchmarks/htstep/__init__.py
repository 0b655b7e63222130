"""HT-Step: article grounding (Afouras et al., 2023)."""
