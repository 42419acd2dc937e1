"""Steps of optimizers for given gradients, clipping, and learning rate schedules."""

import math

import torch

from .fixture_set import RTOL, bound

STEPS = 13
SHAPES = {"w": (5, 9), "b": (6,), "k": (2, 3, 1, 5)}


class Lamb(torch.optim.Optimizer):
    """Layer-wise Adam of You et al. 2019, arXiv 1904.00962, algorithm 2 with phi(x) = min(x, bound)."""

    def __init__(self, parameters, lr, betas, eps, weight_decay, bias_correction, max_trust_ratio=math.inf):
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
            "max_trust_ratio": max_trust_ratio,
        }
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for x in group["params"]:
                state = self.state[x]
                if not state:
                    state.update(step=0, m=torch.zeros_like(x), v=torch.zeros_like(x))
                state["step"] += 1
                beta1, beta2 = group["betas"]
                state["m"].mul_(beta1).add_(x.grad, alpha=1 - beta1)
                state["v"].mul_(beta2).addcmul_(x.grad, x.grad, value=1 - beta2)
                corrections = [1 - beta ** state["step"] if group["bias_correction"] else 1 for beta in (beta1, beta2)]
                ratio = state["m"] / corrections[0] / ((state["v"] / corrections[1]).sqrt() + group["eps"])
                update = ratio + group["weight_decay"] * x
                norms = x.norm(), update.norm()
                trust = norms[0] / norms[1] if norms[0] > 0 and norms[1] > 0 else torch.ones((), dtype=x.dtype)
                x -= group["lr"] * torch.clamp(trust, max=group["max_trust_ratio"]) * update


class Lars(torch.optim.Optimizer):
    """You et al. 2017, arXiv 1708.03888, algorithm 1."""

    def __init__(self, parameters, lr, momentum, weight_decay, trust_coefficient):
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust_coefficient": trust_coefficient}
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for x in group["params"]:
                state = self.state[x]
                if not state:
                    state["v"] = torch.zeros_like(x)
                decay = group["weight_decay"]
                weight, gradient = x.norm(), x.grad.norm()
                local = group["trust_coefficient"] * weight / (gradient + decay * weight) if weight > 0 and gradient > 0 else 1
                state["v"].mul_(group["momentum"]).add_(group["lr"] * local * (x.grad + decay * x))
                x -= state["v"]


def learning_rate(rule, step):
    """A linear rise to base_lr in `warmup` steps, then half a cosine down to min_ratio of it."""
    if step < rule["warmup"]:
        return rule["base_lr"] * (step + 1) / rule["warmup"]
    done = (step - rule["warmup"]) / (rule["total"] - rule["warmup"])
    return rule["base_lr"] * (rule["min_ratio"] + (1 - rule["min_ratio"]) * (1 + math.cos(math.pi * done)) / 2)


def run(make, hyper, parameters, gradients, dtype):
    """The parameters after each step."""
    values = {name: value.to(dtype).clone().requires_grad_() for name, value in parameters.items()}
    optimizer = make(list(values.values()))
    trace = {f"params.{name}": [] for name in values}
    for step in range(STEPS):
        for name, value in values.items():
            value.grad = gradients[name][step].to(dtype).clone()
        if "clip_max_norm" in hyper:
            torch.nn.utils.clip_grad_norm_(list(values.values()), hyper["clip_max_norm"])
        if "schedule" in hyper:
            optimizer.param_groups[0]["lr"] = learning_rate(hyper["schedule"], step)
        optimizer.step()
        for name, value in values.items():
            trace[f"params.{name}"].append(value.detach().clone())
    return {name: torch.stack(steps) for name, steps in trace.items()}


def write_inputs(fixtures):
    random = fixtures.random("optim/inputs")
    parameters = {name: random.normal(*shape) for name, shape in SHAPES.items()}
    gradients = {}
    for name, shape in SHAPES.items():
        scales = 10 ** random.uniform(STEPS, *(1 for _ in shape), low=-3, high=1)
        gradients[name] = random.normal(STEPS, *shape) * scales
        gradients[name][random.uniform(STEPS, *shape) < 0.05] = 0
    gradients["k"][3] = 0
    tensors = {f"param.{name}": value for name, value in parameters.items()} | {
        f"grads.{name}": value for name, value in gradients.items()
    }
    fixtures.add(
        "optim/inputs",
        "optimizer_inputs",
        tensors,
        notes="param.*: where all optimizer fixtures start; grads.* [steps, ...]: the gradients of each step.",
    )
    return parameters, gradients


def write_optimizers(fixtures, parameters, gradients):
    adam = {"lr": 0.02, "betas": [0.9, 0.98], "eps": 1e-7, "weight_decay": 0.0, "amsgrad": False, "maximize": False}
    sgd = {"lr": 0.07, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False, "maximize": False}
    rmsprop = {
        "lr": 0.02,
        "momentum": 0.0,
        "alpha": 0.95,
        "eps": 1e-7,
        "centered": False,
        "weight_decay": 0.0,
        "maximize": False,
    }
    lamb = {"lr": 0.03, "betas": [0.85, 0.99], "eps": 1e-6, "weight_decay": 0.02, "bias_correction": True}
    adagrad = {
        "lr": 0.08,
        "lr_decay": 0.02,
        "eps": 1e-9,
        "weight_decay": 0.002,
        "initial_accumulator_value": 0.05,
        "maximize": False,
    }
    torch_optimizers = {
        "sgd_plain": ("SGD", sgd),
        "sgd_momentum": ("SGD", sgd | {"momentum": 0.8}),
        "sgd_nesterov": ("SGD", sgd | {"momentum": 0.95, "nesterov": True, "weight_decay": 0.03}),
        "sgd_dampening": ("SGD", sgd | {"momentum": 0.7, "dampening": 0.5, "weight_decay": 0.002}),
        "sgd_maximize": ("SGD", sgd | {"momentum": 0.8, "maximize": True}),
        "adam_plain": ("Adam", adam),
        "adam_weight_decay": ("Adam", adam | {"betas": [0.7, 0.9], "eps": 1e-5, "weight_decay": 0.2}),
        "adam_amsgrad": ("Adam", adam | {"amsgrad": True}),
        "adam_maximize": ("Adam", adam | {"maximize": True}),
        "adamw_decay": ("AdamW", adam | {"weight_decay": 0.15}),
        "adamw_amsgrad": ("AdamW", adam | {"weight_decay": 0.01, "amsgrad": True}),
        "rmsprop_plain": ("RMSprop", rmsprop),
        "rmsprop_centered": ("RMSprop", rmsprop | {"momentum": 0.8, "alpha": 0.8, "centered": True, "weight_decay": 0.02}),
        "adagrad_decay": ("Adagrad", adagrad),
    }
    cases = {name: (kind, getattr(torch.optim, kind), options) for name, (kind, options) in torch_optimizers.items()}
    cases["lamb_plain"] = ("LAMB", Lamb, lamb)
    cases["lamb_uncorrected"] = ("LAMB", Lamb, lamb | {"bias_correction": False})
    cases["lamb_bounded"] = ("LAMB", Lamb, lamb | {"max_trust_ratio": 0.6})
    cases["lars_plain"] = ("LARS", Lars, {"lr": 0.4, "momentum": 0.8, "weight_decay": 0.003, "trust_coefficient": 0.02})
    scheduled = {"clip_max_norm": 0.7, "schedule": {"base_lr": 0.04, "warmup": 3, "total": STEPS, "min_ratio": 0.2}}
    for name, (kind, make, options) in cases.items():
        add(fixtures, name, kind, make, options, {}, parameters, gradients)
    add(
        fixtures,
        "adamw_clipped_cosine",
        "AdamW",
        torch.optim.AdamW,
        adam | {"weight_decay": 0.1},
        scheduled,
        parameters,
        gradients,
    )


def add(fixtures, name, kind, make, options, extra, parameters, gradients):
    hyper = {"optimizer": kind} | options | extra
    if "schedule" in extra:
        del hyper["lr"]
    results = {
        dtype: run(lambda values: make(values, **options), hyper, parameters, gradients, dtype)
        for dtype in (torch.float64, torch.float32)
    }
    exact, approximate = results.values()
    atol = max(bound(exact[key], approximate[key]) for key in exact)
    fixtures.add(
        f"optim/{name}",
        "optimizer",
        {key: value.float() for key, value in exact.items()},
        op=name,
        hyper=hyper,
        tolerance={"atol": atol, "rtol": RTOL},
        notes="params.*: after each step.",
    )


def write_clipping(fixtures, gradients):
    max_norm = 0.8
    tensors = {}
    for label, order in (("l2", 2.0), ("linf", math.inf)):
        clipped = {name: [] for name in gradients}
        norms = []
        for step in range(STEPS):
            values = [torch.zeros(all_steps[step].shape, dtype=torch.float64) for all_steps in gradients.values()]
            for value, all_steps in zip(values, gradients.values()):
                value.grad = all_steps[step].double()
            norms.append(torch.nn.utils.clip_grad_norm_(values, max_norm, norm_type=order))
            for name, value in zip(gradients, values):
                clipped[name].append(value.grad)
        tensors[f"total_norm.{label}"] = torch.stack(norms)
        tensors |= {f"clipped.{label}.{name}": torch.stack(steps).float() for name, steps in clipped.items()}
    fixtures.add(
        "optim/clip_grad_norm",
        "clip",
        tensors,
        op="clip_grad_norm",
        hyper={"max_norm": max_norm},
        tolerance={"rtol": RTOL, "atol": 1e-7},
        notes="Of grads.* of optim/inputs, each step by itself. Factor min(1, max_norm / (norm + 1e-6)).",
    )


def write_schedules(fixtures):
    base, num_steps = 0.3, 47

    def rates(name, **options):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=base)
        schedule = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
        lr = []
        for _ in range(num_steps):
            lr.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        return {"base_lr": base, "options": options, "lr": lr, "rule": f"torch.optim.lr_scheduler.{name}"}

    warmup, total = 7, 41
    minimum = 0.02

    def cosine(step):
        return (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2

    def minimum_cosine(step):
        if step < warmup:
            return base * (step + 1) / (warmup + 1)
        return minimum if step > total else minimum + cosine(step) * (base - minimum)

    def waves(step):
        if step < warmup:
            return base * step / warmup
        return base * max(0, (1 + math.cos(math.pi * 2 * 1.5 * (step - warmup) / (total - warmup))) / 2)

    def linear(step):
        return base * step / warmup if step < warmup else base * max(0, (total - step) / (total - warmup))

    common = {"base_lr": base, "warmup": warmup, "total": total}
    fixtures.add_json(
        "optim/lr_schedules",
        "lr_schedules",
        {
            "StepLR": rates("StepLR", step_size=9, gamma=0.4),
            "MultiStepLR": rates("MultiStepLR", milestones=[5, 11, 30], gamma=0.2),
            "ExponentialLR": rates("ExponentialLR", gamma=0.9),
            "CosineAnnealingLR": rates("CosineAnnealingLR", T_max=num_steps, eta_min=0.004),
            "CosineAnnealingWarmRestarts": rates("CosineAnnealingWarmRestarts", T_0=5, T_mult=3, eta_min=0.001),
            "LinearLR": rates("LinearLR", start_factor=0.2, end_factor=0.7, total_iters=15),
            "PolynomialLR": rates("PolynomialLR", total_iters=33, power=1.5),
            "OneCycleLR": rates(
                "OneCycleLR",
                max_lr=0.9,
                total_steps=num_steps + 1,
                pct_start=0.4,
                anneal_strategy="cos",
                div_factor=10.0,
                final_div_factor=500.0,
            ),
            "warmup_cosine_from_zero": common
            | {
                "cycles": 1.5,
                "lr": [waves(step) for step in range(num_steps)],
                "rule": "base*t/warmup below warmup; else base*max(0, (1+cos(2*pi*cycles*(t-warmup)/(total-warmup)))/2)",
            },
            "warmup_cosine_min_lr": common
            | {
                "min_lr": minimum,
                "lr": [minimum_cosine(step) for step in range(num_steps)],
                "rule": "base*(t+1)/(warmup+1) below warmup; min_lr above total; else min_lr + (base-min_lr)*(1+cos(...))/2",
            },
            "warmup_linear": common
            | {
                "lr": [linear(step) for step in range(num_steps)],
                "rule": "base*t/warmup below warmup; else base*max(0, (total-t)/(total-warmup))",
            },
        },
        tolerance={"rtol": 1e-6, "atol": 1e-12},
        notes="lr[t]: the learning rate of step t.",
    )


def write(fixtures):
    parameters, gradients = write_inputs(fixtures)
    write_optimizers(fixtures, parameters, gradients)
    write_clipping(fixtures, gradients)
    write_schedules(fixtures)
