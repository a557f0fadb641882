"""What a Java process says of its heap."""

from __future__ import annotations

import os

from tests.soak.jvm import Heap, bytes_beside, is_java, read_beside, read_heap

G1 = """31337:
 garbage-first heap   total 786432K, used 43052K [0x00000000d0000000, 0x0000000100000000)
  region size 1024K, 3 young (3072K), 0 survivors (0K)
 Metaspace       used 51234K, committed 51776K, reserved 1114112K
  class space    used 5734K, committed 6016K, reserved 1048576K
"""
SERIAL = """4711:
 def new generation   total 78656K, used 10K [0x0000000700000000, 0x0000000705550000)
  eden space 69952K,   0% used [0x0000000700000000, 0x0000000700002800, 0x0000000704450000)
 tenured generation   total 174784K, used 4096K [0x0000000755550000, 0x0000000760000000)
   the space 174784K,   2% used [0x0000000755550000, 0x0000000755950000, 0x0000000760000000)
"""


MAPPINGS = """d0000000-d8000000 rw-p 00000000 00:00 0
Rss:                1000 kB
Anonymous:          1000 kB
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
Rss:                  80 kB
Anonymous:            64 kB
7f0000200000-7f0000300000 r-xp 00000000 08:01 99    /usr/lib/libjvm.so
Rss:                 900 kB
Anonymous:             8 kB
"""


def test_the_heap_is_read_of_either_collector() -> None:
    assert read_heap(G1) == Heap(43_052 << 10, (range(0xD0000000, 0x100000000),))
    serial = read_heap(SERIAL)
    assert serial is not None
    assert serial.used == 4_106 << 10
    assert serial.places == (range(0x700000000, 0x705550000), range(0x755550000, 0x760000000))
    assert read_heap("31337:\nno such process") is None


def test_what_a_process_has_beside_its_heap() -> None:
    heap = read_heap(G1)
    assert heap is not None
    assert read_beside(MAPPINGS, heap) == 72 << 10


def test_a_process_that_is_no_java_process_is_left_alone() -> None:
    assert not is_java(os.getpid())
    assert not is_java(1 << 30)
    assert bytes_beside(os.getpid(), Heap(0, ())) > 1 << 20
    assert bytes_beside(1 << 30, Heap(0, ())) == 0
