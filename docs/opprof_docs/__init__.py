"""The generated parts of the pages, made from what the code itself says."""
