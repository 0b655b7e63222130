"""A benchmark's construction: clips and their labels in, a release in Spacewalk-18's form out (its Sec. 3.1, A.1)."""
