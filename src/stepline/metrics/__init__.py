"""Metrics: pure functions on arrays, each importable alone."""

from stepline.metrics.plans import PlanScores, plan_scores, window_scores
from stepline.metrics.segments import as_segments, detection, iou, mean_iou, mean_jaccard, uniform, whole_seconds
from stepline.metrics.soda import (
    DatasetScore,
    SodaScore,
    SodaScores,
    matched,
    soda_c,
    soda_d,
    soda_d_dataset,
    soda_d_videos,
)

__all__ = [
    "DatasetScore",
    "PlanScores",
    "SodaScore",
    "SodaScores",
    "as_segments",
    "detection",
    "iou",
    "matched",
    "mean_iou",
    "mean_jaccard",
    "plan_scores",
    "soda_c",
    "soda_d",
    "soda_d_dataset",
    "soda_d_videos",
    "uniform",
    "whole_seconds",
    "window_scores",
]
