"""PSS: ordered segmentation and summarisation of instructional videos (Batra et al. 2022)."""
