"""``python -m stepline.config`` prints the reference page of all keys."""

from stepline.config.reference import page

if __name__ == "__main__":
    print(page(), end="")
