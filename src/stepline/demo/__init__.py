"""The builder of the embedded demo study."""
