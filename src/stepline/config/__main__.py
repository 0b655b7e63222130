"""``python -m stepline.config`` prints the page of all keys."""

from stepline.config.reference import page

print(page(), end="")
