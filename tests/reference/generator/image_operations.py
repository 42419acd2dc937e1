"""Convolutions and pooling."""

import torch
from torch.nn import functional


def convolutions(ops):
    def conv(name, x, weight, bias=True, **options):
        random = ops.random(name)
        hyper = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1} | options
        inputs = {"x": random.normal(*x), "weight": random.normal(*weight)}
        transposed = "output_padding" in hyper
        if bias:
            inputs["bias"] = random.normal(weight[1] * hyper["groups"] if transposed else weight[0])
        function = functional.conv_transpose2d if transposed else functional.conv2d
        arguments = {key: tuple(value) if isinstance(value, list) else value for key, value in hyper.items()}
        ops.add(
            name,
            "conv_transpose2d" if transposed else "conv2d",
            inputs,
            lambda t: {"out": function(t["x"], t["weight"], t.get("bias"), **arguments)},
            hyper | {"bias": bias},
        )

    conv("conv2d_3x3", (3, 2, 7, 9), (5, 2, 3, 3), padding=1)
    conv("conv2d_2x2_valid", (2, 3, 6, 5), (4, 3, 2, 2), bias=False)
    conv("conv2d_stride_dilation", (2, 3, 13, 10), (5, 3, 3, 3), stride=3, padding=2, dilation=2)
    conv("conv2d_groups", (2, 6, 5, 7), (9, 2, 3, 3), padding=1, groups=3)
    conv("conv2d_unequal", (3, 2, 8, 11), (3, 2, 5, 2), stride=[1, 3], padding=[2, 0], dilation=[1, 2])
    conv("conv2d_depthwise", (3, 7, 6, 5), (7, 1, 3, 3), bias=False, stride=2, padding=1, groups=7)
    conv("conv2d_pointwise", (3, 5, 4, 7), (11, 5, 1, 1))
    conv("conv_transpose2d_4x4", (3, 5, 3, 4), (5, 2, 4, 4), bias=False, stride=2, padding=1, output_padding=0)
    conv("conv_transpose2d_wide", (2, 3, 4, 3), (3, 5, 3, 3), stride=3, padding=1, output_padding=2)
    conv("conv_transpose2d_groups", (2, 6, 3, 5), (6, 2, 3, 2), stride=[2, 1], padding=[1, 0], output_padding=[1, 0], groups=3)


def pooling(ops):
    def max_pool(name, shape, kernel, stride, padding=0, dilation=1, ceil_mode=False, whole=False):
        x = ops.random(name).normal(*shape)
        hyper = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil_mode}
        ops.add(
            name,
            "max_pool2d",
            {"x": torch.round(x) if whole else x},
            lambda t: {"out": functional.max_pool2d(t["x"], kernel, stride, padding, dilation, ceil_mode)},
            hyper,
            notes="The first of equal elements, in row-major order, gets the gradient.",
        )

    def avg_pool(name, shape, kernel, stride, padding=0, ceil_mode=False, count_include_pad=True):
        hyper = {
            "kernel": kernel,
            "stride": stride,
            "padding": padding,
            "ceil_mode": ceil_mode,
            "count_include_pad": count_include_pad,
        }
        ops.add(
            name,
            "avg_pool2d",
            {"x": ops.random(name).normal(*shape)},
            lambda t: {"out": functional.avg_pool2d(t["x"], kernel, stride, padding, ceil_mode, count_include_pad)},
            hyper,
        )

    max_pool("max_pool2d_2x2", (3, 5, 7, 9), 2, 2)
    max_pool("max_pool2d_padded", (2, 3, 8, 11), 3, 2, padding=1)
    max_pool("max_pool2d_ceil_dilated", (2, 2, 10, 9), 3, 2, dilation=2, ceil_mode=True)
    max_pool("max_pool2d_unequal_ties", (2, 3, 7, 8), [2, 3], [1, 2], padding=[1, 0], whole=True)
    avg_pool("avg_pool2d_3x3", (3, 2, 9, 7), 3, 2)
    avg_pool("avg_pool2d_padded", (2, 5, 6, 8), 3, 2, padding=1)
    avg_pool("avg_pool2d_ceil_excluding", (2, 3, 8, 7), [3, 2], [2, 2], padding=[1, 1], ceil_mode=True, count_include_pad=False)
    for name, shape, size in (
        ("adaptive_avg_pool2d_one", (3, 7, 5, 4), 1),
        ("adaptive_avg_pool2d_uneven", (2, 3, 7, 11), [3, 4]),
    ):
        ops.add(
            name,
            "adaptive_avg_pool2d",
            {"x": ops.random(name).normal(*shape)},
            lambda t, size=size: {"out": functional.adaptive_avg_pool2d(t["x"], size)},
            {"output_size": size},
        )


PARTS = (convolutions, pooling)
