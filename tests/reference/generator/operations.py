"""Forward and backward passes of single operations, computed in double from float32 inputs."""

import math

import torch
from torch.nn import functional

from . import image_operations, sequence_operations
from .fixture_set import RTOL, bound


def evaluate(function, inputs, upstream, constants, dtype):
    """Outputs, and the gradients of sum(gout_OUT * OUT) over all outputs for the inputs that have one."""
    given = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    variables = {}
    for name, tensor in given.items():
        if tensor.is_floating_point() and name not in constants:
            variables[name] = given[name] = tensor.clone().requires_grad_()
    outputs = function(given)
    loss = 0
    for name, value in outputs.items():
        if value.requires_grad:
            loss = loss + (value * upstream[name].to(dtype)).sum() if name in upstream else loss + value
    gradients = torch.autograd.grad(loss, list(variables.values()))
    return {name: value.detach() for name, value in outputs.items()}, dict(zip(variables, gradients))


class Operations:
    def __init__(self, fixtures):
        self.fixtures = fixtures

    def random(self, name):
        return self.fixtures.random(f"ops/{name}")

    def add(self, name, op, inputs, function, hyper=None, constants=(), notes=None):
        """function(inputs) -> {output: value}; a scalar output has the upstream gradient 1."""
        with torch.no_grad():
            shapes = function({key: value.double() if value.is_floating_point() else value for key, value in inputs.items()})
        random = self.random(f"{name}/upstream")
        differentiable = [key for key, value in shapes.items() if not key.startswith("new_")]
        upstream = {key: random.normal(*shapes[key].shape) for key in differentiable if shapes[key].dim() > 0}
        results = {}
        for dtype in (torch.float64, torch.float32):
            outputs, gradients = evaluate(function, inputs, upstream, constants, dtype)
            results[dtype] = outputs | {f"grad_{key}": value for key, value in gradients.items()}
        expected = {key: value.float() for key, value in results[torch.float64].items()}
        tensors = inputs | {f"gout_{key}": value for key, value in upstream.items()} | expected
        roles = {}
        for key in tensors:
            if key in expected:
                kind = "expected_gradient" if key.startswith("grad_") else "expected"
                roles[key] = {"role": kind, "atol": bound(results[torch.float64][key], results[torch.float32][key])}
            else:
                roles[key] = {"role": "upstream_gradient" if key.startswith("gout_") else "input"}
        largest = max(role.get("atol", 0) for role in roles.values())
        fields = {"op": op, "hyper": hyper or {}, "tolerance": {"atol": largest, "rtol": RTOL}}
        if notes:
            fields["notes"] = notes
        self.fixtures.add(f"ops/{name}", "op", tensors, roles, **fields)


def matrices(ops):
    random = ops.random("linear_bias")
    inputs = {"x": random.normal(5, 3, 11), "weight": random.normal(9, 11), "bias": random.normal(9)}
    ops.add(
        "linear_bias", "linear", inputs, lambda t: {"out": functional.linear(t["x"], t["weight"], t["bias"])}, {"bias": True}
    )
    random = ops.random("linear_wide")
    inputs = {"x": random.normal(7, 13), "weight": random.normal(37, 13)}
    ops.add("linear_wide", "linear", inputs, lambda t: {"out": functional.linear(t["x"], t["weight"])}, {"bias": False})
    for name, a, b in (
        ("batched", (3, 2, 5, 7), (3, 2, 7, 4)),
        ("broadcast", (2, 1, 3, 9), (5, 9, 6)),
        ("row", (3, 1, 17), (3, 17, 2)),
    ):
        random = ops.random(f"matmul_{name}")
        inputs = {"a": random.normal(*a), "b": random.normal(*b)}
        ops.add(f"matmul_{name}", "matmul", inputs, lambda t: {"out": t["a"] @ t["b"]})


def activations(ops):
    functions = {
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "gelu_erf": functional.gelu,
        "relu": functional.relu,
        "silu": functional.silu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "leaky_relu": lambda x: functional.leaky_relu(x, 0.15),
        "softplus": functional.softplus,
    }
    for name, function in functions.items():
        random = ops.random(name)
        x = torch.cat(
            [torch.tensor([0.0, -0.0, 1e-4, -1e-4, 13.0, -13.0, 25.0, -25.0, 60.0]), random.normal(82, deviation=2.5)]
        )
        hyper = {"negative_slope": 0.15} if name == "leaky_relu" else {}
        ops.add(name, name, {"x": x}, lambda t, function=function: {"out": function(t["x"])}, hyper)


def norms(ops):
    def layer_norm(name, shape, normalized, eps, affine=True, offset=0.0):
        random = ops.random(name)
        inputs = {"x": random.normal(*shape) + offset}
        if affine:
            inputs |= {"weight": random.normal(*normalized), "bias": random.normal(*normalized)}
        hyper = {"normalized_shape": list(normalized), "eps": eps, "affine": affine}
        ops.add(
            name,
            "layer_norm",
            inputs,
            lambda t: {"out": functional.layer_norm(t["x"], normalized, t.get("weight"), t.get("bias"), eps)},
            hyper,
        )

    layer_norm("layer_norm_affine", (3, 5, 37), (37,), 1e-5)
    layer_norm("layer_norm_plain", (7, 13), (13,), 1e-3, affine=False)
    layer_norm("layer_norm_offset", (4, 71), (71,), 1e-5, offset=500.0)
    layer_norm("layer_norm_two_dims", (3, 4, 5, 6), (5, 6), 1e-5)
    for name, shape, eps, deviation in (("rms_norm_odd", (5, 2, 29), 1e-6, 1.0), ("rms_norm_small", (3, 7), 1e-5, 1e-3)):
        random = ops.random(name)
        inputs = {"x": random.normal(*shape, deviation=deviation), "weight": random.normal(shape[-1])}
        ops.add(
            name,
            "rms_norm",
            inputs,
            lambda t, eps=eps: {"out": t["x"] / torch.sqrt(t["x"].square().mean(-1, keepdim=True) + eps) * t["weight"]},
            {"eps": eps},
            notes="x / sqrt(mean(x^2) + eps) * weight over the last dim.",
        )
    for name, shape, groups in (("group_norm_three", (3, 9, 4, 7), 3), ("group_norm_one", (2, 5, 3, 3), 1)):
        random = ops.random(name)
        inputs = {"x": random.normal(*shape) + 1, "weight": random.normal(shape[1]), "bias": random.normal(shape[1])}
        ops.add(
            name,
            "group_norm",
            inputs,
            lambda t, groups=groups: {"out": functional.group_norm(t["x"], groups, t["weight"], t["bias"], 1e-5)},
            {"groups": groups, "eps": 1e-5},
        )
    for name, shape, training, momentum in (
        ("batch_norm_2d_train", (5, 7, 3, 4), True, 0.1),
        ("batch_norm_1d_train", (9, 5), True, 0.3),
        ("batch_norm_2d_eval", (4, 3, 2, 5), False, 0.1),
    ):
        batch_norm(ops, name, shape, training, momentum)


def batch_norm(ops, name, shape, training, momentum):
    random = ops.random(name)
    channels = shape[1]
    inputs = {
        "x": random.normal(*shape, deviation=2.0) + 0.7,
        "weight": random.normal(channels),
        "bias": random.normal(channels),
        "running_mean": random.normal(channels),
        "running_var": random.uniform(channels, low=0.5, high=2.0),
    }

    def function(t):
        mean, var = t["running_mean"].clone(), t["running_var"].clone()
        out = functional.batch_norm(t["x"], mean, var, t["weight"], t["bias"], training, momentum, 1e-4)
        return {"out": out, "new_running_mean": mean, "new_running_var": var}

    ops.add(
        name,
        "batch_norm",
        inputs,
        function,
        {"training": training, "momentum": momentum, "eps": 1e-4},
        constants=("running_mean", "running_var"),
        notes="The running variance takes the unbiased one of the batch.",
    )


def softmaxes(ops):
    for name, op, shape, dim, scale in (
        ("softmax_last", "softmax", (5, 13), -1, 2.0),
        ("softmax_middle_large", "softmax", (3, 7, 5), 1, 60.0),
        ("softmax_one", "softmax", (4, 1), -1, 1.0),
        ("log_softmax_last", "log_softmax", (7, 11), -1, 20.0),
        ("log_softmax_middle", "log_softmax", (2, 9, 3), 1, 1.0),
    ):
        inputs = {"x": ops.random(name).normal(*shape, deviation=scale)}
        function = getattr(functional, op)
        ops.add(name, op, inputs, lambda t, function=function, dim=dim: {"out": function(t["x"], dim=dim)}, {"dim": dim})
    x = ops.random("softmax_masked").normal(6, 17)
    x[0, 3:] = x[2, ::2] = x[5, 0] = -math.inf
    ops.add(
        "softmax_masked",
        "softmax",
        {"x": x},
        lambda t: {"out": functional.softmax(t["x"], dim=-1)},
        {"dim": -1},
        notes="Where the input is -inf the result and its gradient are 0.",
    )


def losses(ops):
    def cross_entropy(name, shape, reduction="mean", ignore_index=-100, smoothing=0.0, weighted=False, num_ignored=0):
        random = ops.random(name)
        target = random.integers(shape[0], *shape[2:], below=shape[1])
        target[target == ignore_index] = (ignore_index + 1) % shape[1]
        target.view(-1)[1 : 2 * num_ignored : 2] = ignore_index
        inputs = {"logits": random.normal(*shape, deviation=3.0), "target": target}
        if weighted:
            inputs["class_weight"] = random.uniform(shape[1], low=0.2, high=3.0)
        hyper = {"reduction": reduction, "ignore_index": ignore_index, "label_smoothing": smoothing, "class_weight": weighted}
        ops.add(
            name,
            "cross_entropy",
            inputs,
            lambda t: {
                "out": functional.cross_entropy(
                    t["logits"],
                    t["target"],
                    weight=t.get("class_weight"),
                    reduction=reduction,
                    ignore_index=ignore_index,
                    label_smoothing=smoothing,
                )
            },
            hyper,
            constants=("class_weight",),
        )

    cross_entropy("cross_entropy_mean", (7, 13))
    cross_entropy("cross_entropy_two_classes", (5, 2))
    cross_entropy("cross_entropy_ignored", (11, 9), num_ignored=4)
    cross_entropy("cross_entropy_ignored_class", (9, 6), ignore_index=3, num_ignored=2)
    cross_entropy("cross_entropy_smooth", (7, 5), smoothing=0.2)
    cross_entropy("cross_entropy_smooth_ignored", (9, 7), smoothing=0.05, num_ignored=3)
    cross_entropy("cross_entropy_pixels_sum", (3, 7, 5), reduction="sum", num_ignored=5)
    cross_entropy("cross_entropy_rows", (6, 11), reduction="none", num_ignored=1)
    cross_entropy("cross_entropy_weighted", (9, 4), weighted=True, num_ignored=2)
    cross_entropy("cross_entropy_weighted_smooth", (8, 5), weighted=True, smoothing=0.1)
    for reduction in ("mean", "sum"):
        random = ops.random(f"bce_{reduction}")
        inputs = {"logits": random.normal(7, 3, deviation=4.0), "target": random.uniform(7, 3)}
        ops.add(
            f"bce_with_logits_{reduction}",
            "bce_with_logits",
            inputs,
            lambda t, reduction=reduction: {
                "out": functional.binary_cross_entropy_with_logits(t["logits"], t["target"], reduction=reduction)
            },
            {"reduction": reduction},
            constants=("target",),
        )
        random = ops.random(f"mse_{reduction}")
        inputs = {"x": random.normal(5, 7), "target": random.normal(5, 7)}
        ops.add(
            f"mse_{reduction}",
            "mse_loss",
            inputs,
            lambda t, reduction=reduction: {"out": functional.mse_loss(t["x"], t["target"], reduction=reduction)},
            {"reduction": reduction},
            constants=("target",),
        )


def embeddings(ops):
    for name, rows, width, padding in (("embedding_plain", 13, 7, None), ("embedding_padding", 9, 5, 4)):
        random = ops.random(name)
        inputs = {"weight": random.normal(rows, width), "index": random.integers(5, 7, below=rows)}
        ops.add(
            name,
            "embedding",
            inputs,
            lambda t, padding=padding: {"out": functional.embedding(t["index"], t["weight"], padding_idx=padding)},
            {"padding_idx": padding},
        )


def write(fixtures):
    ops = Operations(fixtures)
    here = (matrices, activations, norms, softmaxes, losses, embeddings)
    for part in here + image_operations.PARTS + sequence_operations.PARTS:
        part(ops)
