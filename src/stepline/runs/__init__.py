"""What the verbs `fit`, `predict`, `score`, `table`, `report` and `explain` do, on any benchmark."""
