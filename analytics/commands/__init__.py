"""The commands of `runlake`, by what a person is doing: filling a lake, asking it, reading about runlake itself."""
