"""Makes tar archives, or reads all their samples once by webdataset in one process: prints seconds and what was read as JSON.

With --images their images are decoded, cropped at random as by torchvision's RandomResizedCrop, flipped, and normalized: by PIL and
numpy, by PIL and torchvision, or by torchvision alone.
"""

import argparse
import io
import json
import math
import random
import time

import braceexpand
import webdataset


def photo_of(draw, height, width):
    """A JPEG file with shapes of all sizes and some noise."""
    import numpy
    from PIL import Image

    numbers = numpy.random.default_rng(draw.getrandbits(32))
    total = numpy.zeros((height, width, 3))
    for cells in (3, 9, 27, 81):
        small = Image.fromarray(numbers.integers(0, 256, (cells, cells, 3), dtype=numpy.uint8))
        total += numpy.asarray(small.resize((width, height), Image.BICUBIC)) / 4
    total += numbers.normal(0, 4, total.shape)
    content = io.BytesIO()
    Image.fromarray(total.clip(0, 255).astype(numpy.uint8)).save(content, "JPEG", quality=90)
    return content.getvalue()


def make(options):
    shards = list(braceexpand.braceexpand(options.pattern))
    draw = random.Random(1)
    height, width = options.extents
    photos = [photo_of(draw, height, width) for _ in range(50)] if height else []
    for number, shard in enumerate(shards):
        with webdataset.TarWriter(shard) as archive:
            for sample in range(number * options.make // len(shards), (number + 1) * options.make // len(shards)):
                size = draw.randint(options.bytes // 2, options.bytes * 3 // 2)
                content = photos[sample % len(photos)] if photos else draw.randbytes(size)
                archive.write({"__key__": f"sample/{sample:08d}", "jpg": content, "cls": str(sample % 1000).encode()})


def digest_of(samples):
    digest = 0xCBF29CE484222325
    for key, sizes in samples:
        for byte in (key + "".join(f" {name}={size}" for name, size in sizes)).encode():
            digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest


def timed(samples):
    """Elapsed seconds, processor seconds, and a list of the samples."""
    start, processor = time.perf_counter(), time.process_time()
    seen = list(samples)
    return time.perf_counter() - start, time.process_time() - processor, seen


def tell(times, version):
    seconds, processor, seen = times
    print(json.dumps({"seconds": seconds, "processor_seconds": processor, "samples": len(seen), "digest": digest_of(seen),
                      "version": version}))


def read(pattern):
    tell(timed((sample["__key__"], [(name, len(value)) for name, value in sample.items() if not name.startswith("__")])
               for sample in webdataset.WebDataset(pattern, shardshuffle=False)), webdataset.__version__)


def crop_of(draw, height, width):
    for _ in range(10):
        area = height * width * draw.uniform(0.08, 1)
        ratio = math.exp(draw.uniform(math.log(3 / 4), math.log(4 / 3)))
        box_width, box_height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < box_width <= width and 0 < box_height <= height:
            left, top = draw.randint(0, width - box_width), draw.randint(0, height - box_height)
            return left, top, left + box_width, top + box_height
    return 0, 0, width, height


def augmented_by_pil(extent):
    import numpy
    from PIL import Image

    draw = random.Random(1)
    mean, std = numpy.float32([0.485, 0.456, 0.406]), numpy.float32([0.229, 0.224, 0.225])

    def augmented(sample):
        image, label = sample
        image = image.crop(crop_of(draw, image.height, image.width)).resize((extent, extent), Image.BILINEAR)
        if draw.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        return (numpy.asarray(image, dtype=numpy.float32) / 255 - mean) / std, label

    return augmented


def augmented_by_torchvision(extent):
    import torch
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    transform = v2.Compose([v2.RandomResizedCrop(extent, antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(),
                            v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    return lambda sample: (transform(sample[0]), sample[1])


def decoded_by_torchvision(key, content):
    import torch
    from torchvision.io import decode_jpeg

    return decode_jpeg(torch.frombuffer(bytearray(content), dtype=torch.uint8)) if key.endswith("jpg") else None


def read_images(pattern, extent, by):
    decoder = decoded_by_torchvision if by == "torchvision" else "pil"
    augmented = augmented_by_pil(extent) if by == "pil" else augmented_by_torchvision(extent)
    images = webdataset.WebDataset(pattern, shardshuffle=False).decode(decoder).to_tuple("jpg", "cls").map(augmented).batched(32)
    seconds, processor, counts = timed(len(labels) for _, labels in images)
    print(json.dumps({"images_per_second": sum(counts) / seconds, "images_per_processor_second": sum(counts) / processor}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern")
    parser.add_argument("--make", type=int, help="make archives of so many samples")
    parser.add_argument("--bytes", type=int, default=10000, help="of a sample that is made, on average")
    parser.add_argument("--extents", type=lambda text: [int(number) for number in text.split("x")], default=[0, 0],
                        help="HEIGHTxWIDTH: of photos that are made")
    parser.add_argument("--images", type=int, help="decode and augment images to so many pixels each way")
    parser.add_argument("--by", choices=["pil", "pil+torchvision", "torchvision"], default="pil", help="what decodes and augments")
    options = parser.parse_args()
    if options.make:
        make(options)
    elif options.images:
        read_images(options.pattern, options.images, options.by)
    else:
        read(options.pattern)


if __name__ == "__main__":
    main()
