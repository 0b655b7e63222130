"""Times as people read them."""


def clock(seconds: float) -> str:
    """Return a time as ``1:02:03`` or ``2:03``."""
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
