"""Construction of a benchmark: from clips and labels to a release in Spacewalk-18's form (its Sec. 3.1, A.1)."""
