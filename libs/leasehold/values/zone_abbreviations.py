"""Abbreviations of offsets, as PostgreSQL's default set has them: EST is five hours behind, in
summer too. Those it has for zones that have gone are left out."""

from __future__ import annotations

from typing import Final

_MINUTES: Final = {
    -600: "hst taht",
    -570: "mart",
    -540: "akst gamt",
    -480: "akdt pst",
    -420: "mst pdt",
    -360: "cst galt mdt",
    -300: "cdt cot est pet",
    -240: "amt ast bot edt",
    -210: "nft nst",
    -180: "adt brt clst gft pmst uyt",
    -150: "ndt",
    -120: "brst fnt pmdt uyst",
    -60: "azot egt",
    0: "azost egst gmt uct ut utc wet z zulu",
    60: "bst cet met mez wat wetdst",
    120: "cest cetdst eet ist mest mesz metdst sast",
    180: "eat eest eetdst idt",
    210: "irt",
    240: "mut ret sct",
    270: "aft",
    300: "mvt pkt tft tjt uzt",
    345: "npt",
    360: "almt bdt btt",
    390: "mmt",
    420: "cxt ict wast",
    480: "awst bnt hkt myt pht",
    540: "jst kst pwt",
    570: "acst cast",
    600: "aest chut ddut kdt pgt",
    630: "acdt cadt",
    660: "aedt pont vut",
    720: "fjt gilt nzst tvt wakt",
    765: "chast",
    780: "fjst nzdt tot",
    825: "chadt",
}
ABBREVIATIONS: Final = {
    name: minutes * 60 for minutes, names in _MINUTES.items() for name in names.split()
}
"""Lower case → seconds ahead of UTC."""
