"""`python -m goalmode`."""

from goalmode.cli.main import main

if __name__ == "__main__":
    main()
