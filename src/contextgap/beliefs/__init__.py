"""Posteriors as intervals and gaps: widths, beliefs, decisions."""
