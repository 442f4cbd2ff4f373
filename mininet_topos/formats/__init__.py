"""Other tools' topology files: a module a format, with `parse` (text to topology) and `render` (topology to text).

Errors name the place in the file: `line 3`, `links[2]`, `tier 1`.
"""
