"""Where objects of bytes are kept under names: a folder, or an object store such as S3."""
