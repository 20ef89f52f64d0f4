"""``python -m contextgap`` is the command line too."""

from contextgap.cli import main

main()
