"""What every other package uses: arrays, checks, labels, contexts, components and files."""
