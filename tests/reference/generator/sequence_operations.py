"""Recurrent layers and attention."""

import math

import torch


def recurrent(ops):
    def run(name, op, batch, time, width, hidden, layers=1, bidirectional=False, batch_first=True):
        kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[op]
        module = kind(width, hidden, layers, bidirectional=bidirectional, batch_first=batch_first)
        random = ops.random(name)
        states = (layers * (2 if bidirectional else 1), batch, hidden)
        inputs = {"x": random.normal(*((batch, time) if batch_first else (time, batch)), width), "h0": random.normal(*states)}
        if op == "lstm":
            inputs["c0"] = random.normal(*states)
        for key, parameter in module.named_parameters():
            inputs[key] = random.uniform(*parameter.shape, low=-0.6, high=0.6)

        def function(t):
            state = (t["h0"], t["c0"]) if op == "lstm" else t["h0"]
            module.to(t["x"].dtype)
            weights = {key: t[key] for key, _ in module.named_parameters()}
            out, state = torch.func.functional_call(module, weights, (t["x"], state))
            return {"out": out} | (dict(zip(("hn", "cn"), state)) if op == "lstm" else {"hn": state})

        ops.add(
            name,
            op,
            inputs,
            function,
            {"hidden": hidden, "layers": layers, "bidirectional": bidirectional, "batch_first": batch_first},
        )

    for op in ("lstm", "gru"):
        run(f"{op}_one_layer", op, 5, 7, 3, 6)
        run(f"{op}_three_layers", op, 2, 5, 7, 3, layers=3, batch_first=False)
        run(f"{op}_both_ways", op, 3, 4, 5, 4, layers=2, bidirectional=True)


def attention(ops):
    # documents: of each row, the lengths of those that lie in it, whose queries see no other; window: keys that a query sees.
    def run(
        name,
        batch,
        heads,
        queries,
        keys,
        size,
        causal,
        kv_heads=None,
        value_size=None,
        padded=False,
        scale=None,
        documents=None,
        window=0,
    ):
        random = ops.random(name)
        kv_heads = kv_heads or heads
        inputs = {
            "q": random.normal(batch, heads, queries, size),
            "k": random.normal(batch, kv_heads, keys, size),
            "v": random.normal(batch, kv_heads, keys, value_size or size),
        }
        mask = torch.ones(queries, keys, dtype=torch.bool)
        if causal:
            mask = mask.tril(keys - queries)
        mask = mask.expand(batch, 1, queries, keys)
        if padded:
            hidden = torch.zeros(batch, keys, dtype=torch.uint8)
            for row in range(batch):
                hidden[row, keys - 2 * row :] = 1
            inputs["key_padding_mask"] = hidden
            mask = mask & (hidden == 0)[:, None, None, :]
        if documents:
            first_keys = torch.zeros(batch, queries, dtype=torch.int32)
            blocks = torch.zeros(batch, 1, queries, keys, dtype=torch.bool)
            for row, lengths in enumerate(documents):
                blocks[row, 0] = torch.block_diag(*(torch.ones(length, length) for length in lengths)) > 0
                starts = [sum(lengths[:number]) for number in range(len(lengths))]
                first_keys[row] = torch.tensor(starts).repeat_interleave(torch.tensor(lengths))
            inputs["first_keys"] = first_keys
            mask = mask & blocks
        if window:
            mask = mask & torch.ones(queries, keys, dtype=torch.bool).triu(keys - queries - window + 1)

        def function(t):
            k, v = (t[key].repeat_interleave(heads // kv_heads, dim=1) for key in ("k", "v"))
            scores = t["q"] @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(size))
            return {"out": scores.masked_fill(~mask, -math.inf).softmax(-1) @ v}

        hyper = {"causal": causal, "scale": scale or "1/sqrt(head_dim)", "key_padding_mask": padded}
        hyper |= {"window": window} if window else {}
        ops.add(
            name,
            "scaled_dot_product_attention",
            inputs,
            function,
            hyper,
            notes="[batch, heads, time, size]; query i sees the keys up to i + keys - queries; key_padding_mask: 1 hides a key.",
        )

    run("attention_causal", 3, 2, 13, 13, 6, causal=True)
    run("attention_causal_long", 1, 1, 67, 67, 4, causal=True)
    run("attention_cross", 2, 3, 5, 11, 10, causal=False)
    run("attention_padded", 3, 2, 9, 9, 8, causal=True, padded=True)
    run("attention_one_query", 3, 2, 1, 17, 8, causal=True)
    run("attention_shared_keys", 2, 6, 7, 7, 4, causal=True, kv_heads=2)
    run("attention_value_size", 2, 2, 5, 7, 8, causal=False, value_size=6)
    run("attention_documents", 2, 4, 71, 71, 6, causal=True, kv_heads=2, documents=([1, 40, 7, 23], [30, 5, 36]))
    run("attention_window", 2, 2, 9, 62, 5, causal=True, window=13)
    run("attention_documents_window", 1, 2, 33, 33, 8, causal=True, documents=([2, 19, 12],), window=4)


PARTS = (recurrent, attention)
