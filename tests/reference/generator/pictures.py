"""Image files of many kinds, converted and resized by PIL with BILINEAR."""

import io
import struct
import zlib

import numpy
import torch
from PIL import Image

HEIGHT, WIDTH = 23, 37
SIZES = {"smaller": (9, 16), "larger": (40, 51), "wider": (11, 60), "same": (HEIGHT, WIDTH)}  # height, width
ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))  # top, left, steps


def pixels_of(fixtures, name, channels, largest=255):
    """A smooth picture with noise, [height, width, channels]."""
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    waves = [numpy.sin(x / (3 + c)) + numpy.cos(y / (4 + c)) for c in range(channels)]
    noise = fixtures.random(name).uniform(HEIGHT, WIDTH, channels).numpy()
    values = numpy.stack(waves, axis=-1) / 4 + 0.5 + 0.3 * (noise - 0.5)
    return numpy.clip(values * largest, 0, largest).astype(numpy.uint16 if largest > 255 else numpy.uint8)


def png_file(pixels, interlaced=False):
    """A PNG file of 8 or 16 bits as PIL does not write it."""
    bits, channels = pixels.dtype.itemsize * 8, pixels.shape[2]

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    parts = [pixels[top::rows, left::columns] for top, left, rows, columns in ADAM7] if interlaced else [pixels]
    lines = b"".join(b"\0" + line.astype(f">u{bits // 8}").tobytes() for part in parts for line in part if line.size)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, {1: 0, 3: 2}[channels], 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def image_of(pixels):
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


def write(fixtures):
    colours = pixels_of(fixtures, "colours", 3)
    grey = pixels_of(fixtures, "grey", 1)
    with_alpha = pixels_of(fixtures, "with_alpha", 4)
    deep = pixels_of(fixtures, "deep", 3, 65535)
    photo, plain = image_of(colours), image_of(grey)
    palette = photo.quantize(16)
    files = {  # the file, and the image that is in it
        "colours.png": (saved(photo, "PNG"), photo),
        "grey.png": (saved(plain, "PNG"), plain),
        "black_and_white.png": (saved(plain.convert("1"), "PNG"), plain.convert("1")),
        "palette.png": (saved(palette, "PNG", bits=4), palette),
        "transparent_palette.png": (saved(palette, "PNG", transparency=3), palette),
        "alpha.png": (saved(image_of(with_alpha), "PNG"), image_of(with_alpha)),
        "grey_alpha.png": (saved(image_of(with_alpha).convert("LA"), "PNG"), image_of(with_alpha).convert("LA")),
        "deep.png": (png_file(deep), image_of((deep >> 8).astype(numpy.uint8))),
        "deep_grey.png": (png_file(deep[..., :1]), image_of((deep[..., :1] >> 8).astype(numpy.uint8))),
        "interlaced.png": (png_file(colours, interlaced=True), photo),
        "baseline.jpg": (saved(photo, "JPEG", quality=90), None),
        "full_colours.jpg": (saved(photo, "JPEG", quality=90, subsampling=0), None),
        "progressive.jpg": (saved(photo, "JPEG", quality=90, progressive=True), None),
        "grey.jpg": (saved(plain, "JPEG", quality=90), None),
    }
    fixtures.write("pictures/cmyk.jpg", saved(photo.convert("CMYK"), "JPEG"))
    tensors, roles = {}, {}
    for file, (content, image) in files.items():
        fixtures.write(f"pictures/{file}", content)
        image = image or Image.open(io.BytesIO(content))
        for size, (height, width) in SIZES.items():
            if size != "smaller" and file not in ("colours.png", "baseline.jpg"):
                continue
            for mode in ("RGB", "L"):
                name = f"{file}_{size}_{mode}"
                resized = numpy.asarray(image.convert(mode).resize((width, height), Image.Resampling.BILINEAR))
                tensors[name] = torch.from_numpy(resized.reshape(height, width, -1).copy())
                # Versions of libjpeg may round differently.
                roles[name] = {"picture": file, "most_off": 3 if file.endswith(".jpg") else 0}
    fixtures.add("pictures/expected", "pictures", tensors, roles)
