"""Damages of media files: of bytes and of packets."""

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.corpus_bases import EXACT

Bytes = Callable[[Random, bytes], bytes]


def _block(rng: Random, data: bytes) -> tuple[int, int]:
    size = min(1 << rng.randint(8, 16), len(data) // 5)
    begin = rng.randrange(len(data) - size)
    return begin, begin + size


def cut_end(rng: Random, data: bytes) -> bytes:
    """Lose what is behind some byte."""
    return data[: int(len(data) * rng.uniform(0.1, 0.98))]


def cut_last(rng: Random, data: bytes) -> bytes:
    """Lose the last bytes."""
    return data[: -rng.randint(1, 2000)]


def cut_head(rng: Random, data: bytes) -> bytes:
    """Lose what is before some byte."""
    return data[int(len(data) * rng.uniform(0.001, 0.6)) :]


def flip_bit(rng: Random, data: bytes) -> bytes:
    """Change a bit."""
    return _changed(data, rng.randrange(len(data)), 1 << rng.randrange(8))


def flip_bytes(rng: Random, data: bytes) -> bytes:
    """Change 10 bytes."""
    for _ in range(10):
        data = _changed(data, rng.randrange(len(data)), rng.randint(1, 255))
    return data


def zero_block(rng: Random, data: bytes) -> bytes:
    """Zero a block."""
    begin, end = _block(rng, data)
    return data[:begin] + bytes(end - begin) + data[end:]


def noise_block(rng: Random, data: bytes) -> bytes:
    """Replace a block by noise."""
    begin, end = _block(rng, data)
    return data[:begin] + rng.randbytes(end - begin) + data[end:]


def lose_block(rng: Random, data: bytes) -> bytes:
    """Remove a block."""
    begin, end = _block(rng, data)
    return data[:begin] + data[end:]


def double_block(rng: Random, data: bytes) -> bytes:
    """Put a block in twice."""
    begin, end = _block(rng, data)
    return data[:end] + data[begin:]


def lose_ts_packets(rng: Random, data: bytes) -> bytes:
    """Lose up to 20 packets of a transport stream."""
    packets = [data[i : i + 188] for i in range(0, len(data), 188)]
    for _ in range(rng.randint(1, 20)):
        del packets[rng.randrange(3, len(packets))]
    return b"".join(packets)


def lose_index(_: Random, data: bytes) -> bytes:
    """Take the index away: an AVI's idx1, Matroska's Cues, an mp4's moov."""
    if data[:4] == b"RIFF":
        return data[: data.rindex(b"idx1")]
    if data[:4] == b"\x1a\x45\xdf\xa3":
        return data[: data.rindex(b"\x1c\x53\xbb\x6b")]
    return data.replace(b"moov", b"free")


def claim(rng: Random, data: bytes) -> bytes:
    """Let the header claim another duration or number of frames."""
    factor = rng.choice([0.5, 0.9, 1.3, 3])
    if data[:4] == b"RIFF":
        data = _scaled(data, data.index(b"avih") + 8 + 16, "<I", factor)
        return _scaled(data, data.index(b"strh") + 8 + 32, "<I", factor)
    if data[:4] == b"\x1a\x45\xdf\xa3":
        return _scaled(data, data.index(b"\x44\x89\x88") + 3, ">d", factor)
    if data[:3] == b"FLV":
        return _scaled(data, data.index(b"duration\x00") + 9, ">d", factor)
    for box in rng.sample([b"mvhd", b"tkhd", b"mdhd"], rng.randint(1, 3)):
        data = _scaled(data, data.index(box) + (24 if box == b"tkhd" else 20), ">I", factor)
    return data


def count(rng: Random, data: bytes) -> bytes:
    """Let an mp4's table of sizes hold more or fewer samples."""
    at = data.index(b"stsz") + 12
    (n,) = struct.unpack_from(">I", data, at)
    return data[:at] + struct.pack(">I", max(1, n + rng.choice([-10, -3, -1, 1, 5]))) + data[at + 4 :]


def _changed(data: bytes, at: int, bits: int) -> bytes:
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def _scaled(data: bytes, at: int, form: str, factor: float) -> bytes:
    (value,) = struct.unpack_from(form, data, at)
    new = value * factor if form.endswith("d") else int(value * factor)
    return data[:at] + struct.pack(form, new) + data[at + struct.calcsize(form) :]


ANY: tuple[Bytes, ...] = (
    cut_end, cut_last, cut_head, flip_bit, flip_bytes, zero_block, noise_block, lose_block, double_block,
)  # fmt: skip
CLAIMING = ("mp4", "mov", "avi", "mkv", "webm", "flv", "3gp")
INDEXED = ("avi", "mkv", "webm", "mp4")


def of_bytes(suffix: str, faststart: bool) -> tuple[Bytes, ...]:
    """Return the damages of bytes that a container can have."""
    own: list[Bytes] = []
    if suffix == "ts":
        own += [lose_ts_packets, lose_ts_packets]
    if suffix in CLAIMING and not faststart:
        own.append(claim)
    if suffix in INDEXED:
        own.append(lose_index)
    if suffix in ("mp4", "mov", "3gp") and not faststart:
        own.append(count)
    return ANY + tuple(own)


def copy(source: Path, target: Path, change: Callable[[list[Any], list[Any]], None], form: str | None) -> None:
    """Copy the packets of ``source``, after ``change`` of the list of the pictures' and of the others."""
    import av

    with av.open(str(source)) as before, av.open(str(target), "w", format=form, options=EXACT) as after:
        copies = {stream.index: after.add_stream_from_template(stream, opaque=True) for stream in before.streams}
        packets = [packet for packet in before.demux() if packet.size]
        pictures = [packet for packet in packets if packet.stream.type == "video"]
        sounds = [packet for packet in packets if packet.stream.type != "video"]
        order = {id(packet): i for i, packet in enumerate(packets)}
        change(pictures, sounds)
        for packet in sorted([*pictures, *sounds], key=lambda packet: order[id(packet)]):
            packet.stream = copies[packet.stream_index]
            after.mux(packet)


def _noise(rng: Random, packet: Any) -> None:
    size = min(rng.choice([1, 8, 64, 4000]), max(1, packet.size - 4))
    begin, data = rng.randrange(packet.size - size + 1), bytes(packet)
    packet.update(data[:begin] + rng.randbytes(size) + data[begin + size :])


def damage_packet(rng: Random, pictures: list[Any], _: list[Any]) -> None:
    """Overwrite a part of one picture's packet with noise."""
    _noise(rng, rng.choice(pictures))


def damage_sound(rng: Random, _: list[Any], sounds: list[Any]) -> None:
    """Overwrite a part of five packets of the sound with noise."""
    for packet in rng.sample(sounds, min(5, len(sounds))):
        _noise(rng, packet)


def empty_packet(rng: Random, pictures: list[Any], _: list[Any]) -> None:
    """Zero one picture's packet."""
    packet = rng.choice(pictures)
    packet.update(bytes(packet.size))


def drop_packet(rng: Random, pictures: list[Any], _: list[Any]) -> None:
    """Lose one packet."""
    del pictures[rng.randrange(1, len(pictures))]


def drop_packets(rng: Random, pictures: list[Any], _: list[Any]) -> None:
    """Lose up to 15 packets in a row."""
    begin = rng.randrange(1, len(pictures) - 1)
    del pictures[begin : begin + rng.randint(2, 15)]


def drop_last(rng: Random, pictures: list[Any], _: list[Any]) -> None:
    """Lose up to 20 last packets of the pictures, none of the sound."""
    del pictures[-rng.randint(1, 20) :]


def drop_first_key(rng: Random, pictures: list[Any], _: list[Any]) -> None:
    """Lose the first key frame and some that follow."""
    del pictures[: rng.randint(1, 5)]


def double_time(rng: Random, pictures: list[Any], _: list[Any]) -> None:
    """Give two pictures one time."""
    i = rng.randrange(2, len(pictures) - 1)
    pictures[i].pts = pictures[i - 1].pts


PACKETS = (
    damage_packet, damage_packet, damage_sound, empty_packet, drop_packet, drop_packets, drop_last, drop_first_key,
    double_time,
)  # fmt: skip


def rotate(data: bytes, degrees: int, mirror: bool) -> bytes:
    """Write a display matrix into the first track's header of an mp4."""
    a, b = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    sign = -1 if mirror else 1
    matrix = struct.pack(">9i", sign * a << 16, sign * b << 16, 0, -b << 16, a << 16, 0, 0, 0, 1 << 30)
    at = data.index(b"tkhd") + 44
    return data[:at] + matrix + data[at + 36 :]
