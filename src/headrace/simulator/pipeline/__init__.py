"""Deployed pipelines in virtual time: flows of buffers."""
