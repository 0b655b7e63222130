"""What a run would do, and how far one is: read from plans, records and locks. Nothing is computed or removed here."""
