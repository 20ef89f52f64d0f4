"""Whatever comes (arrays, frames, rows, dictionaries, files) as one internal form."""
