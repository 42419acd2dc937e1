"""The model of benchmarks/llama_step with experts as transformers' Mixtral, with DistributedDataParallel over gloo.

Run by compare_experts; by hand: mpirun-free, one process a rank:
  RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python3 mixtral_torch.py --steps 5 --json out.json
"""

SIZES = [("layers", 4), ("heads", 6), ("kv-heads", 2), ("width", 384), ("hidden", 512), ("experts", 8), ("top-k", 2),
         ("block", 256), ("vocabulary", 256), ("batch", 8)]


def mixtral(options):
    import transformers

    config = transformers.MixtralConfig(
        vocab_size=options.vocabulary,
        hidden_size=options.width,
        intermediate_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.kv_heads,
        num_local_experts=options.experts,
        num_experts_per_tok=options.top_k,
        max_position_embeddings=options.block,
        tie_word_embeddings=True,
        use_cache=False,
    )
    model = transformers.MixtralForCausalLM(config)
    model.set_experts_implementation(options.implementation)
    return model


def main():
    import torch
    from gpt_torch import optimizer_of
    from torch.nn import functional as F
    from torch_ddp import measure, parser_of, start

    parser = parser_of(SIZES)
    parser.add_argument("--implementation", default="eager", help="of the experts: eager, grouped_mm")
    options = parser.parse_args()
    start(options)
    tokens = torch.randint(options.vocabulary, (options.batch, options.block))
    targets = torch.randint(options.vocabulary, (options.batch, options.block))

    def loss_of(model):
        return F.cross_entropy(model(tokens).logits.view(-1, options.vocabulary), targets.view(-1))

    measure(options, mixtral(options), lambda parameters: optimizer_of(parameters, fused=True), loss_of, "tokens",
            options.batch * options.block, clip_norm=1.0)


if __name__ == "__main__":
    main()
