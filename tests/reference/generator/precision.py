"""Loss scaling and conversions to half precision."""

import math

import torch

SHAPES = {"w": (3, 5), "b": (7,)}


def scaler_run(name, options, script):
    """The scale of torch.amp.GradScaler after each step; script holds pairs of (a gradient is inf, number of steps)."""
    scale = torch.tensor(options["init_scale"], dtype=torch.float32)
    tracker = torch.zeros((), dtype=torch.int32)
    rows = []
    for found_inf, repeat in script:
        for _ in range(repeat):
            before = scale.item()
            torch._amp_update_scale_(
                scale,
                tracker,
                torch.tensor(float(found_inf)),
                options["growth_factor"],
                options["backoff_factor"],
                options["growth_interval"],
            )
            rows.append([len(rows), found_inf, before, scale.item(), tracker.item()])
    kept = [row for index, row in enumerate(rows) if index in (0, len(rows) - 1) or row[1] or row[2] != row[3]]
    complete = len(rows) <= 40
    return {
        "name": name,
        "options": options,
        "script_run_length": script,
        "rows_are_complete": complete,
        "columns": ["step", "found_inf", "scale_before", "scale_after", "growth_tracker_after"],
        "rows": rows if complete else kept,
        "skipped_steps": sum(repeat for found_inf, repeat in script if found_inf),
        "final_scale": scale.item(),
        "final_growth_tracker": tracker.item(),
    }


def write_scaler(fixtures):
    usual = {"init_scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000}
    fixtures.add_json(
        "amp/grad_scaler",
        "grad_scaler",
        [
            scaler_run("usual_growth", usual, [[0, 2003]]),
            scaler_run("usual_just_missed", usual, [[0, 1999], [1, 1], [0, 2001]]),
            scaler_run("many_infs", usual, [[1, 7], [0, 5]]),
            scaler_run("interval_five", usual | {"growth_interval": 5}, [[0, 5], [1, 2], [0, 4], [1, 1], [0, 11]]),
            scaler_run("interval_one", usual | {"growth_interval": 1}, [[0, 3], [1, 1], [0, 5]]),
            scaler_run(
                "other_factors",
                {"init_scale": 500.0, "growth_factor": 3.0, "backoff_factor": 0.125, "growth_interval": 3},
                [[0, 7], [1, 2], [0, 9]],
            ),
            scaler_run("largest", usual | {"init_scale": 2.0**125, "growth_interval": 1}, [[0, 6]]),
        ],
        tolerance={"exact": True},
        notes="As torch.amp.GradScaler; without all rows those of infs, changes, the first and the last.",
    )


def write_training(fixtures):
    options = {"init_scale": 256.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2}
    hyper = options | {"optimizer": "SGD", "lr": 0.15, "momentum": 0.8}
    random = fixtures.random("amp/scaled_sgd")
    start = {name: random.normal(*shape) for name, shape in SHAPES.items()}
    values = {name: value.double().requires_grad_() for name, value in start.items()}
    optimizer = torch.optim.SGD(values.values(), lr=hyper["lr"], momentum=hyper["momentum"])
    scaler = torch.amp.GradScaler("cpu", **options)
    scaler.scale(torch.zeros(()))
    tensors = {f"param.{name}": value for name, value in start.items()}
    rows = {key: [] for name in SHAPES for key in (f"scaled_grads.{name}", f"params.{name}")} | {
        "scale_used": [],
        "found_inf": [],
    }
    for step in range(11):
        scale = scaler.get_scale()
        bad = {2: math.inf, 7: math.nan, 8: -math.inf}.get(step)
        for index, (name, value) in enumerate(values.items()):
            scaled = (random.normal(*SHAPES[name]) * scale).float()
            if bad is not None and index == step % 2:
                scaled.view(-1)[-1] = bad
            rows[f"scaled_grads.{name}"].append(scaled)
            value.grad = scaled.double()
        scaler.step(optimizer)
        scaler.update()
        for name, value in values.items():
            rows[f"params.{name}"].append(value.detach().float())
        rows["scale_used"].append(torch.tensor(scale, dtype=torch.float32))
        rows["found_inf"].append(torch.tensor(int(bad is not None), dtype=torch.uint8))
    tensors |= {name: torch.stack(steps) for name, steps in rows.items()}
    fixtures.add(
        "amp/scaled_sgd",
        "amp_training",
        tensors,
        hyper=hyper,
        tolerance={"atol": 5e-6, "rtol": 1e-5},
        notes="scaled_grads: of the loss times scale_used; a step with an inf or nan is skipped. params.*: after each step.",
    )


def write_casts(fixtures):
    random = fixtures.random("amp/casts")
    edges = [
        0.0,
        1.0,
        1 + 2.0**-11,
        1 + 3 * 2.0**-11,
        1 + 2.0**-8,
        1 + 3 * 2.0**-8,
        65504.0,
        65519.996,
        65520.0,
        65536.0,
        2.0**-14,
        2.0**-24,
        2.0**-25,
        1.5 * 2.0**-25,
        2.0**-26,
        2.0**-133,
        2.0**-134,
        1.5 * 2.0**-134,
        3.3895314e38,
        3.4028235e38,
        math.inf,
        math.nan,
    ]
    x = torch.cat(
        [
            torch.tensor(edges),
            -torch.tensor(edges),
            random.normal(61),
            random.normal(61) * 10 ** random.uniform(61, low=-9, high=6),
        ]
    )
    half, bfloat = x.half(), x.bfloat16()
    tensors = {"x": x, "to_f16": half, "to_bf16": bfloat, "f16_back": half.float(), "bf16_back": bfloat.float()}
    fixtures.add(
        "amp/casts", "casts", tensors, tolerance={"exact": True}, notes="Ties to even, subnormals kept, inf beyond the largest."
    )


def write(fixtures):
    write_scaler(fixtures)
    write_training(fixtures)
    write_casts(fixtures)
