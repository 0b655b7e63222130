"""The implementation of the verbs `fit`, `predict`, `score`, `table`, `report` and `explain` for all benchmarks."""
