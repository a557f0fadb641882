"""Goal: bytes that older releases have written, and newer ones will read, stay what they are.

Method: one sample of every record class with something in each of its fields, and the digest of its
bytes. A field that is appended to a record changes its digest here, and nothing else may: what
moves or retypes a field needs another FORMAT.
"""

from __future__ import annotations

from hashlib import blake2b

from leasehold.adapters.codec.record_shape import CLASS_BY_TAG
from leasehold.adapters.codec.records import MessagePackCodec
from tests.support.codec.records import sample

DIGESTS = {
    "Claim": "6ee9a802f0d0e3d5",
    "Decisions": "01876e9497075b8c",
    "Barrier": "0363def4fbb06798",
    "Ack": "aa7bbf5411495059",
    "LeaseAck": "34fe4d308762fbee",
    "CheckReport": "f5f6650368ef5b3d",
    "HoldingReport": "47d87ea4d18cb19d",
    "AccessReport": "3567e0dbf68c3a91",
    "MergeReport": "c490211cb14ba25c",
    "NodeReport": "d4f3470b787d3aed",
    "ProcessReport": "06bf04aa27f8276c",
    "PartReport": "f79b4a07f2019fec",
    "Result": "97cf180f95c99426",
    "Conflict": "30903a9910c4684f",
    "ResultBatch": "805ac6e2b8173e18",
    "RowImage": "1d4b6740ae1f67ed",
    "VersionEvent": "e83ad2deec0c6081",
    "JobEvent": "a21c7a7cb53781cc",
    "JobProgress": "c9a1dfa1095d638c",
    "DeadLetter": "a3ac98dd285fc751",
    "RowsTruncated": "bf4a639de5871ab1",
    "SparkReport": "e3152bdc8f028b70",
    "ChangefeedReport": "6c3cc6b5c56cfee0",
    "RowLeftOut": "1a961d95df9dc27b",
    "Chunk": "727bc8d3102827ec",
    "ChunksEnd": "d42da2d916430e81",
    "Findings": "507fed8a1f6f603d",
    "BackfillBorder": "709950ed87d2e054",
    "LogPosition": "53acc7e4a2505993",
    "DescriptorWrite": "5af2b1eab4ff28c2",
    "JobWrite": "ceb472ec11d4a0d3",
    "MinVersion": "c550121030eb45d8",
    "LedgerRun": "c3b3eada61305398",
    "ChunkDecided": "8719051e8f0b1602",
    "TableTruncated": "1af42f386ff837ec",
    "FindingsDecided": "b7a22e95c4ab07ed",
    "TableForgotten": "68a5e0800b4289b0",
    "JobForgotten": "631b1feec6d34246",
    "RoleWrite": "40958da0fb075d65",
    "MembershipWrite": "78bfa7453d5e3a01",
    "AccessWrite": "b602fb022fb1a206",
    "ViewWrite": "2f43a6e530a0346b",
    "CommentWrite": "fab303a07eabce17",
    "EnumWrite": "3262a462afc3334d",
    "NamespaceWrite": "2b1474e8b554d4a5",
}


def test_every_record_has_the_bytes_it_had() -> None:
    codec = MessagePackCodec()
    encoded = {cls: codec.encode(sample(cls)) for cls in CLASS_BY_TAG.values()}
    for cls, data in encoded.items():
        assert codec.encode(codec.decode(data)) == data, cls
    found = {
        cls.__name__: blake2b(data, digest_size=8).hexdigest() for cls, data in encoded.items()
    }
    assert found == DIGESTS
