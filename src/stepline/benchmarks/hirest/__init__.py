"""HiREST: video retrieval, moment retrieval, moment segmentation and step captioning (Zala et al., 2023)."""
