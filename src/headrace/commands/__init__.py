"""The commands, one file each; shared parts are in options, dataclass_options and console."""
