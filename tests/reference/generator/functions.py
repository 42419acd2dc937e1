"""Functions over a dim and functions of two operands that are broadcast, for every kind of shape, empty ones too."""

import torch
from torch.nn import functional

LENGTHS = (0, 1, 2, 5, 7)
AROUND = (2, 3, 2)  # the other dims


def shape_of(dim, length):
    return [length if place == dim else other for place, other in enumerate(AROUND)]


def indices(x, dim, length):
    return (torch.arange(length) * 3 + 1) % max(x.shape[dim], 1)


def index_like(x, dim):
    shape = [min(extent, 2) for extent in x.shape]
    return (torch.arange(torch.Size(shape).numel()).reshape(shape) * 3 + 1) % max(x.shape[dim], 1)


def index_along(x, dim):
    shape = [min(extent, 2) if place == dim else extent for place, extent in enumerate(x.shape)]
    return (torch.arange(torch.Size(shape).numel()).reshape(shape) * 3 + 1) % max(x.shape[dim], 1)


def reached(source, index):
    """Torch has no gradient of a source that is larger than the index."""
    return source[tuple(slice(extent) for extent in index.shape)]


def tiled(x, dim, times):
    return x.repeat([times if place == dim else 1 for place in range(x.dim())])


def padded(x, dim, before, after, **mode):
    amounts = [0, 0] * (x.dim() - 1 - dim) + [before, after]
    if mode and dim == 0:  # torch pads the last two dims of three
        return padded(x.transpose(0, 2), 2, before, after, **mode).transpose(0, 2)
    return functional.pad(x, amounts, **mode)


OVER_A_DIM = {
    "sum": lambda x, dim: x.sum(dim),
    "sum_kept": lambda x, dim: x.sum(dim, keepdim=True),
    "mean": lambda x, dim: x.mean(dim),
    "prod": lambda x, dim: x.prod(dim),
    "max": lambda x, dim: x.amax(dim),
    "min": lambda x, dim: x.amin(dim),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "var": lambda x, dim: x.var(dim, correction=0),
    "stddev": lambda x, dim: x.std(dim, correction=0, keepdim=True),
    "norm_1": lambda x, dim: torch.linalg.vector_norm(x, 1, dim),
    "norm_2": lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
    "norm_inf": lambda x, dim: torch.linalg.vector_norm(x, torch.inf, dim),
    "max_with_index": lambda x, dim: x.max(dim).values,
    "min_with_index": lambda x, dim: x.min(dim, keepdim=True).values,
    "softmax": lambda x, dim: x.softmax(dim),
    "log_softmax": lambda x, dim: x.log_softmax(dim),
    "cumsum": lambda x, dim: x.cumsum(dim),
    "cumprod": lambda x, dim: x.cumprod(dim),
    "sort": lambda x, dim: x.sort(dim).values,
    "sort_descending": lambda x, dim: x.sort(dim, descending=True).values,
    "topk": lambda x, dim: x.topk(min(2, x.shape[dim]), dim).values,
    "flip": lambda x, dim: x.flip(dim),
    "roll": lambda x, dim: x.roll(2, dim),
    "slice": lambda x, dim: x.transpose(0, dim)[1::2].transpose(0, dim),
    "narrow": lambda x, dim: x.narrow(dim, x.shape[dim] // 2, (x.shape[dim] + 1) // 2),
    "split": lambda x, dim: x.split(2, dim)[-1],
    "chunk": lambda x, dim: x.chunk(3, dim)[0],
    "repeat": lambda x, dim: tiled(x, dim, 3),
    "expand": lambda x, dim: x.unsqueeze(dim).expand(*x.shape[:dim], 3, *x.shape[dim:]),
    "pad": lambda x, dim: padded(x, dim, 2, 1),
    "pad_reflect": lambda x, dim: padded(x, dim, 1, 1, mode="reflect"),
    "pad_replicate": lambda x, dim: padded(x, dim, 2, 1, mode="replicate"),
    "cat": lambda x, dim: torch.cat([x, -x, x], dim),
    "stack": lambda x, dim: torch.stack([x, x], dim),
    "transpose": lambda x, dim: x.transpose(dim, -1),
    "permute": lambda x, dim: x.permute((dim + 1) % 3, (dim + 2) % 3, dim),
    "flatten": lambda x, dim: x.flatten(dim),
    "squeeze": lambda x, dim: x.squeeze(dim),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim),
    "gather": lambda x, dim: x.gather(dim, index_like(x, dim)),
    "scatter_add": lambda x, dim: x.scatter_add(dim, index_along(x, dim), x.narrow(dim, 0, min(2, x.shape[dim]))),
    "scatter_add_less": lambda x, dim: x.scatter_add(dim, index_like(x, dim), reached(x, index_like(x, dim))),
    "scatter_amax": lambda x, dim: x.scatter_reduce(dim, index_like(x, dim), reached(x, index_like(x, dim)), "amax"),
    "scatter_amin": lambda x, dim: x.scatter_reduce(dim, index_along(x, dim), reached(x, index_along(x, dim)), "amin"),
    "slice_scatter": lambda x, dim: x.slice_scatter(x.narrow(dim, 0, x.shape[dim] // 2), dim, 1, None, 2),
    "index_select": lambda x, dim: x.index_select(dim, indices(x, dim, 4)),
    "index_add": lambda x, dim: x.index_add(dim, indices(x, dim, x.shape[dim]), x),
    "glu": lambda x, dim: functional.glu(x, dim),
    "triu": lambda x, dim: x.transpose(dim, -1).triu(),
    "tril": lambda x, dim: x.transpose(dim, -1).tril(1),
}

OF_TWO = {
    "add": torch.add,
    "subtract": torch.subtract,
    "multiply": torch.multiply,
    "divide": torch.divide,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "pow": lambda a, b: a.abs().pow(b),
    "where": lambda a, b: torch.where(a > 0, a, b),
    "map": lambda a, b: a * torch.sigmoid(b),
}


def gradient_of(result):
    """The weights of the sum that is differentiated: a formula of the place, so that they need not be stored."""
    places = torch.arange(result.numel())
    return (((places * 7) % 11 - 5) / 4).double().reshape(result.shape)


def distinct(random, shape, shift):
    """Numbers that are exact in every type, all different, none 0."""
    size = torch.Size(shape).numel()
    order = torch.randperm(size, generator=random.generator)
    return ((order * 2 - size | 1) / 32 + shift).double().reshape(shape)


def two_shapes(dim, length):
    """Pairs of shapes with the same result: none, one or two dims broadcast, one dim of each, leading dims left out."""
    full = shape_of(dim, length)
    ones = [[1 if place in places else extent for place, extent in enumerate(full)] for places in ([dim], [(dim + 1) % 3])]
    both = [1 if place in (dim, (dim + 1) % 3) else extent for place, extent in enumerate(full)]
    return [(full, full), (full, ones[0]), (full, both), (both, full), (ones[0], ones[1]), (full, full[1:]), (full[2:], full)]


def computed(function, operands, arguments=()):
    """The result and the gradients of the operands; none where torch raises an error."""
    inputs = [operand.clone().requires_grad_() for operand in operands]
    try:
        result = function(*inputs, *arguments)
    except (RuntimeError, IndexError, ValueError):
        return None
    result.backward(gradient_of(result))
    return result.detach(), [torch.zeros_like(x) if x.grad is None else x.grad for x in inputs]


def flat(tensors):
    return torch.cat([tensor.reshape(-1) for tensor in tensors]).float() if tensors else torch.zeros(0)


def add(fixtures, name, functions, operand_names, cases):
    """cases: operands and further arguments."""
    tensors = {key: flat([operands[place] for operands, _ in cases]) for place, key in enumerate(operand_names)}
    for function, compute in functions.items():
        results = [computed(compute, operands, arguments) for operands, arguments in cases]
        shapes = [[-1] + [0] * 4 if result is None else [len(result[0].shape), *result[0].shape] for result in results]
        tensors[f"{function}.shapes"] = torch.tensor([shape + [0] * (5 - len(shape)) for shape in shapes], dtype=torch.int32)
        tensors[f"{function}.out"] = flat([result[0] for result in results if result])
        for place, key in enumerate(operand_names):
            tensors[f"{function}.grad_{key}"] = flat([result[1][place] for result in results if result])
    hyper = {
        "functions": list(functions),
        "cases": [
            {"shapes": [list(operand.shape) for operand in operands]} | ({"dim": arguments[0]} if arguments else {})
            for operands, arguments in cases
        ],
    }
    fixtures.add(name, "functions", tensors, hyper=hyper, tolerance={"atol": 1e-6, "rtol": 1e-6})


def write(fixtures):
    random = fixtures.random("functions")
    places = [(dim, length) for dim in range(3) for length in LENGTHS]
    add(
        fixtures,
        "functions/over_a_dim",
        OVER_A_DIM,
        ["x"],
        [([distinct(random, shape_of(dim, length), 0)], [dim]) for dim, length in places],
    )
    add(
        fixtures,
        "functions/of_two",
        OF_TWO,
        ["a", "b"],
        [
            ([distinct(random, a, 0), distinct(random, b, 1 / 64)], [])
            for dim, length in places
            for a, b in two_shapes(dim, length)
        ],
    )
