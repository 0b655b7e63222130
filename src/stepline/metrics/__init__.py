"""Metrics: pure functions on arrays, each importable alone."""

from stepline.metrics.moments import (
    covered,
    matched_scores,
    moment_hits,
    moment_iou,
    preprocess_moment_bounds,
    segmentation_scores,
)
from stepline.metrics.plans import PlanScores, plan_scores, window_scores
from stepline.metrics.retrieval import first_rank, rank, recall_at
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
    "covered",
    "detection",
    "first_rank",
    "iou",
    "matched",
    "matched_scores",
    "mean_iou",
    "mean_jaccard",
    "moment_hits",
    "moment_iou",
    "plan_scores",
    "preprocess_moment_bounds",
    "rank",
    "recall_at",
    "segmentation_scores",
    "soda_c",
    "soda_d",
    "soda_d_dataset",
    "soda_d_videos",
    "uniform",
    "whole_seconds",
    "window_scores",
]
