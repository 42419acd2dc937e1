"""Code that the training runs of all models share."""

import torch

from .fixture_set import rounded_up
from .optimizers import learning_rate

DECAY = {"all": 0, "tensors with 2 or more dimensions": 2}  # the least dims of a parameter with weight decay


def draw(module, random, gains=None):
    """Values for all parameters of a module that keep the size of activations about constant, some of them times a gain."""
    for name, parameter in module.named_parameters():
        if parameter.dim() > 1:
            values = random.normal(*parameter.shape, deviation=parameter[0].numel() ** -0.5)
        else:
            values = random.normal(*parameter.shape, deviation=0.1) + (1 if name.endswith("weight") else 0)
        parameter.data.copy_(values * (gains or {}).get(name, 1.0))
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def make_optimizer(hyper, named):
    fields = hyper.get("optim", hyper)
    kind = fields.get("name") or fields["optimizer"]
    options = {key: fields[key] for key in ("lr", "betas", "eps", "momentum", "nesterov") if key in fields}
    least = DECAY[fields.get("decay", "all")]
    decay = fields.get("weight_decay", 0.0)
    groups = [{"params": [value], "weight_decay": decay if value.dim() >= least else 0.0} for value in named.values()]
    return getattr(torch.optim, kind)(groups, **options)


class Trace:
    """Losses and norms of a run, the first gradients and the last values."""

    def __init__(self, named, hyper):
        self.named = named
        self.hyper = hyper
        self.optimizer = make_optimizer(hyper, named)
        self.losses = []
        self.norms = []
        self.first_gradients = None

    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        values = list(self.named.values())
        clip = self.hyper.get("clip")
        self.norms.append(torch.linalg.vector_norm(torch.stack([value.grad.norm() for value in values])).item())
        if self.first_gradients is None:
            self.first_gradients = {name: value.grad.clone() for name, value in self.named.items()}
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(values, clip)
        if "schedule" in self.hyper:
            rule = self.hyper["schedule"] | {"base_lr": self.hyper["lr"]}
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate(rule, len(self.losses))
        self.losses.append(loss.item())
        self.optimizer.step()


def final_bound(exact, approximate):
    floats = [name for name, value in exact.items() if value.is_floating_point()]
    error = max((exact[name] - approximate[name].double()).abs().max().item() for name in floats)
    return rounded_up(max(1e-5, 16 * error))


def loss_bound(exact, approximate):
    return rounded_up(max(1e-5, 16 * max(abs(a - b) for a, b in zip(exact, approximate))))


def narrowed(tensors):
    return {name: value.float() if value.is_floating_point() else value for name, value in tensors.items()}


def add_run(
    fixtures, name, model, config, hyper, runs, logits=None, first_gradients=False, final=True, of_bound=dict, notes=None
):
    """runs: (trace, final state) in double and in float32; of_bound(state): the values from which the bound of final.* is computed."""
    (exact, state), (approximate, other_state) = runs
    values = {"loss_f64": exact.losses, "loss_f32": approximate.losses, "grad_norm": exact.norms}
    tensors = {key: torch.tensor(numbers, dtype=torch.float64) for key, numbers in values.items()}
    if logits is not None:
        tensors["logits_step0"] = logits.float()
    if first_gradients:
        tensors |= {f"grad_step0.{key}": value.float() for key, value in exact.first_gradients.items()}
    if final:
        tensors |= {f"final.{key}": value for key, value in narrowed(state).items()}
    tolerance = {
        "loss_abs": loss_bound(exact.losses, approximate.losses),
        "grad_step0": {"atol": 2e-6, "rtol": 1e-4},
        "final_param_abs": final_bound(of_bound(state), of_bound(other_state)),
    }
    fields = {"model": model, "config": config, "hyper": hyper, "values": values, "tolerance": tolerance}
    if notes:
        fields["notes"] = notes
    fixtures.add(name, "training_run", tensors, **fields)
