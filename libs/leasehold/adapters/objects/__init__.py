"""Keeps objects of bytes under names: in a folder, or in an object store such as S3."""
