"""`python -m headrace`: the command."""

from headrace.cli import main

if __name__ == "__main__":
    main()
