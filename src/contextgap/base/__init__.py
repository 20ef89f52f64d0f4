"""What every room stands on: arrays, checks, labels, contexts, components and files."""
