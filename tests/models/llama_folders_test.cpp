// Checks of a Llama's folder: its config, its weights and their index.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/architectures/llama-inl.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

void copy_folder(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& file : fs::directory_iterator(from)) fs::copy_file(file.path(), to / file.path().filename());
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// A folder of the references whose files a test may change.
class ChangedFolder {
 public:
  explicit ChangedFolder(const char* name) {
    for (const tests::ModelFolder& folder : tests::model_folders("folders_of_transformers")) {
      if (folder.name() == name) copy_folder(folder.path, path());
    }
  }
  fs::path path() const { return folder_.path() / "model"; }
  json config() const { return tests::read_json(path() / "config.json"); }
  void set_config(const json& config) const { write(path() / "config.json", config.dump()); }
  void change(const char* key, const json& value) const {
    json changed = config();
    changed[key] = value;
    set_config(changed);
  }

 private:
  tests::TemporaryFolder folder_;
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("configs of other models and options are refused by name") {
  const ChangedFolder folder("llama");
  const json config = folder.config();
  const auto refused = [&](const char* key, const json& value, const std::string& text) {
    CAPTURE(key);
    folder.set_config(config);
    folder.change(key, value);
    const std::string said = refusal([&] { models::llama_options(folder.path()); });
    CHECK_THAT(said, ContainsSubstring(text));
    CHECK_THAT(said, ContainsSubstring("config.json"));
  };
  refused("model_type", "gemma3", "model_type");
  refused("hidden_act", "gelu", "hidden_act");
  refused("num_hidden_layers", 0, "num_hidden_layers");
  refused("num_hidden_layers", 1e9, "num_hidden_layers");
  refused("num_hidden_layers", 1000000000, "num_hidden_layers");
  refused("num_attention_heads", "four", "num_attention_heads");
  refused("num_key_value_heads", 3, "num_key_value_heads");
  refused("hidden_size", -32, "hidden_size");
  refused("vocab_size", nullptr, "vocab_size");
  refused("head_dim", 7.5, "head_dim");
  refused("attention_dropout", 1, "attention_dropout");
  refused("rms_norm_eps", "small", "rms_norm_eps");
  refused("tie_word_embeddings", 1, "tie_word_embeddings");
  refused("quantization_config", {{"bits", 4}}, "quantization_config");
  refused("rope_parameters", {{"rope_type", "longrope"}, {"rope_theta", 1e4}}, "rope_parameters.rope_type");
  refused("rope_parameters", {{"rope_type", "linear"}, {"rope_theta", 1e4}}, "rope_parameters.factor");
  refused("rope_parameters", {{"rope_type", "linear"}, {"factor", 0.5}}, "rope_parameters.factor");
  refused("rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}, "partial_rotary_factor");
  refused("rope_parameters", {{"rope_type", "default"}, {"hidden_twist", 1}}, "hidden_twist");
  refused("rope_parameters", "default", "rope_parameters");
  refused("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 0}}, "rope_theta");
  refused("residual_multiplier", 0.2, "residual_multiplier");
  refused("layer_types", {"full_attention"}, "layer_types");
  refused("layer_types", {"full_attention", "linear_attention"}, "layer_types");
  refused("layer_types", {"full_attention", "sliding_attention"}, "there is no sliding window");
  refused("layer_types", {"sliding_attention", "sliding_attention"}, "there is no sliding window");
  refused("rms_norm_eps", -1e-6, "rms_norm_eps");
  const json llama3{{"rope_type", "llama3"}, {"factor", 2}, {"low_freq_factor", 1}, {"high_freq_factor", 4}};
  const auto with = [&](const char* key, const json& value) {
    json changed = llama3;
    changed["original_max_position_embeddings"] = 16;
    changed[key] = value;
    return changed;
  };
  refused("rope_parameters", llama3, "original_max_position_embeddings");
  refused("rope_parameters", with("original_max_position_embeddings", 0), "original_max_position_embeddings");
  refused("rope_parameters", with("high_freq_factor", 0.5), "high_freq_factor");
  refused("rope_parameters", with("low_freq_factor", 0), "low_freq_factor");
  refused("rope_parameters", {{"rope_type", "yarn"}, {"factor", 2}, {"beta_slow", 0}}, "beta_slow");
  refused("rope_parameters", {{"rope_type", "yarn"}, {"factor", 2}, {"mscale", 1e308}, {"mscale_all_dim", 1}},
          "attention_factor");
  json deep = 1;
  for (int level = 0; level < 100; ++level) deep = json::array({deep});
  refused("num_hidden_layers", deep, "had a list");
  folder.set_config(config);
  CHECK_NOTHROW(models::llama_options(folder.path()));
  write(folder.path() / "config.json", "{\"model_type\": ");
  CHECK_THAT(refusal([&] { models::llama_options(folder.path()); }), ContainsSubstring("no JSON object"));
  fs::remove(folder.path() / "config.json");
  CHECK_THAT(refusal([&] { models::llama_options(folder.path()); }), ContainsSubstring("can't be read"));
}

TEST_CASE("configs of experts that are not known are refused by name") {
  const auto refused = [](const char* model, const char* key, const json& value, const std::string& text) {
    CAPTURE(model, key);
    const ChangedFolder folder(model);
    folder.change(key, value);
    CHECK_THAT(refusal([&] { models::llama_options(folder.path()); }), ContainsSubstring(text));
  };
  refused("mixtral", "num_local_experts", 0, "num_local_experts");
  refused("mixtral", "num_experts_per_tok", 5, "num_experts_per_tok");
  refused("mixtral", "router_jitter_noise", 0.1, "router_jitter_noise");
  refused("mixtral", "router_aux_loss_coef", -1, "router_aux_loss_coef");
  refused("qwen2_moe", "decoder_sparse_step", 2, "decoder_sparse_step");
  refused("qwen2_moe", "mlp_only_layers", {1}, "mlp_only_layers");
  refused("qwen2_moe", "use_sliding_window", true, "use_sliding_window");
  refused("qwen2_moe", "layer_types", {"full_attention", "sliding_attention"}, "layer_types");
  refused("qwen3_moe", "moe_intermediate_size", 0, "moe_intermediate_size");
  refused("qwen3_moe", "norm_topk_prob", 3, "norm_topk_prob");
  refused("qwen3_moe", "n_group", 3, "n_group");
}

TEST_CASE("what a config does not say is what transformers takes") {
  const auto options_without = [](const char* model, std::initializer_list<const char*> keys) {
    const ChangedFolder folder(model);
    json config = folder.config();
    for (const char* key : keys) config.erase(key);
    folder.set_config(config);
    return models::llama_options(folder.path());
  };
  CHECK(options_without("mistral_window", {"sliding_window"}).window == 4096);
  CHECK(options_without("mistral_window", {"max_position_embeddings"}).block == 131072);
  CHECK(options_without("llama", {"num_key_value_heads"}).kv_heads == 4);
  CHECK(options_without("qwen2_some_windows", {"sliding_window"}).window == 4096);
  CHECK(options_without("qwen2_some_windows", {"layer_types"}).windowed == std::vector{false, true});
  CHECK(options_without("qwen2_some_windows", {"layer_types", "max_window_layers"}).window == 0);
  CHECK_THROWS_WITH(options_without("mistral_window", {"num_key_value_heads"}), ContainsSubstring("num_key_value_heads"));

  const ChangedFolder folder("mistral_window");
  folder.change("sliding_window", nullptr);
  CHECK(models::llama_options(folder.path()).window == 0);
  folder.change("sliding_window", 7);
  folder.change("layer_types", {"full_attention", "full_attention"});
  CHECK_THROWS_WITH(models::llama_options(folder.path()), ContainsSubstring("layer_types"));
  const ChangedFolder both("llama");  // the older key wins, and takes nothing of the other
  both.change("rope_scaling", {{"type", "linear"}, {"factor", 3}});
  both.change("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 777.0}});
  CHECK(models::llama_options(both.path()).rotary_scaling.factor == 3);
  CHECK(models::llama_options(both.path()).rotary_base == 10000);
}

TEST_CASE("keys that compute nothing are passed over") {
  const ChangedFolder folder("llama");
  const json keys{{"attention_dropout", 0.1},    {"pretraining_tp", 2},
                  {"unsloth_fixed", true},       {"_num_labels", 5},
                  {"max_sequence_length", 2048}, {"custom_pipelines", {{"text-generation", {{"pt", "AutoModelForCausalLM"}}}}},
                  {"classifier_dropout", 0.1},   {"output_hidden_states", true},
                  {"suppress_tokens", {1, 2}},   {"sep_token_id", 3},
                  {"pad_token_id", -1}};
  json config = folder.config();
  config.update(keys);
  config["rope_parameters"]["finetuned"] = true;
  folder.set_config(config);
  CHECK(models::llama_options(folder.path()).unused_attention_dropout == 0.1);
  folder.change("is_decoder", true);  // what is not in the list is still refused
  CHECK_THROWS_WITH(models::llama_options(folder.path()), ContainsSubstring("is_decoder"));
}

TEST_CASE("a model sees as many tokens as its scaling of positions is made for") {
  const ChangedFolder folder("llama");
  const auto block_of = [&](const json& rope, std::int64_t positions) {
    folder.change("rope_parameters", rope);
    folder.change("max_position_embeddings", positions);
    return models::llama_options(folder.path()).block;
  };
  const json yarn{{"rope_type", "yarn"}, {"factor", 4.0}, {"rope_theta", 1e4}, {"original_max_position_embeddings", 32}};
  CHECK(block_of(yarn, 40) == 128);
  CHECK(block_of(yarn, 128) == 128);
  CHECK(block_of(yarn, 200) == 200);
  const models::LlamaOptions options = models::llama_options(folder.path());
  CHECK(options.rotary_scaling.trained_positions == 32);
  json alone = yarn;
  alone.erase("original_max_position_embeddings");
  CHECK(block_of(alone, 40) == 160);
  CHECK(block_of({{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 1e4}}, 40) == 80);
  CHECK(block_of({{"rope_type", "default"}, {"rope_theta", 1e4}}, 40) == 40);
  json llama3{{"rope_type", "llama3"}, {"factor", 8.0},        {"rope_theta", 1e4}, {"original_max_position_embeddings", 16},
              {"low_freq_factor", 1},  {"high_freq_factor", 4}};
  CHECK(block_of(llama3, 40) == 40);
  CHECK(block_of(llama3, 16) == 128);
  // Written folders can be read.
  for (const char* const kind : {"yarn", "linear"}) {
    CAPTURE(kind);
    block_of({{"rope_type", kind}, {"factor", 2.0}, {"rope_theta", 1e4}}, 40);
    const auto read = models::llama_options(folder.path());
    models::Llama<Float32> model(read);
    model.initialize();
    models::save_pretrained(model, folder.path() / kind);
    CHECK(read.block == 80);
    CHECK(models::llama_options(folder.path() / kind).block == 80);
  }
}

TEST_CASE("an output layer beside a tied embedding is its own where it differs") {
  const ChangedFolder folder("llama_grouped_tied_llama3");
  const fs::path weights = folder.path() / "model.safetensors";
  std::vector<std::vector<float>> values;
  std::vector<TensorRef> tensors;
  const json index = tests::read_json(folder.path() / "model.safetensors.index.json");
  for (const auto& [name, shard] : index.at("weight_map").items()) {
    const SafetensorsFile file(folder.path() / shard.get<std::string>());
    values.push_back(tests::read_floats(file, name));
    tensors.push_back({.name = name, .dtype = DType::float32, .shape = file.at(name).shape});
  }
  const auto embedding = std::ranges::find(tensors, "model.embed_tokens.weight", &TensorRef::name) - tensors.begin();
  const auto write_weights = [&] {
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].data = values[i].data();
    write_safetensors(weights, tensors);
  };
  const auto tokens = Tensor<std::int32_t>::from({1, 4}, {1, 2, 3, 4});
  const auto logits = [&](const models::LlamaOptions& options) {
    models::Llama<Float32> model(options);
    models::load_pretrained(model, folder.path());
    const auto span = model.logits(tokens).value().span();
    return std::vector<float>(span.begin(), span.end());
  };
  const models::LlamaOptions tied = models::llama_options(folder.path());
  const std::vector<float> wanted = logits(tied);
  values.push_back(values[static_cast<std::size_t>(embedding)]);
  tensors.push_back(
      {.name = "lm_head.weight", .dtype = DType::float32, .shape = tensors[static_cast<std::size_t>(embedding)].shape});
  write_weights();
  CHECK(models::llama_options(folder.path()).tied);
  CHECK(logits(tied) == wanted);

  values.back()[5] += 1;
  write_weights();
  const models::LlamaOptions apart = models::llama_options(folder.path());
  CHECK_FALSE(apart.tied);
  CHECK(logits(apart) != wanted);
  CHECK_THROWS_WITH(logits(tied),
                    ContainsSubstring("the file has two with different values") && ContainsSubstring("lm_head.weight"));
  CHECK(models::llama_options(folder.path() / "config.json").tied);  // of a config alone

  values.back()[5] -= 1;
  values[static_cast<std::size_t>(embedding)].swap(values.back());
  tensors[static_cast<std::size_t>(embedding)].name = "lm_head.weight";  // the file has the head alone
  values.pop_back();
  tensors.pop_back();
  write_weights();
  CHECK(models::llama_options(folder.path()).tied);
  CHECK(logits(tied) == wanted);
}

TEST_CASE("a folder has one chat template: the one that is saved, else that of its tokenizer") {
  const ChangedFolder from("llama");
  const tests::TemporaryFolder saved;
  const fs::path config = saved.path() / "tokenizer_config.json", file = saved.path() / "chat_template.jinja";
  write(from.path() / "tokenizer.json", "{}");
  write(from.path() / "tokenizer_config.json", R"({"eos_token":"</s>","chat_template":"of the config"})");
  models::Llama<Float32> model(models::llama_options(from.path()));
  model.initialize({.seed = 1});
  models::save_pretrained(model, saved.path(), {.from = from.path(), .chat_template = "of this run"});
  CHECK(content(file) == "of this run");
  CHECK(tests::read_json(config) == json{{"eos_token", "</s>"}});
  models::save_pretrained(model, saved.path(), {.from = from.path()});
  CHECK(!fs::exists(file));
  CHECK(tests::read_json(config).at("chat_template") == "of the config");
  // What lies beside a tokenizer that is named as a file goes along, and a folder that is its own source stays as it is.
  write(saved.path() / "tokenizer_config.json", "");
  models::save_pretrained(model, saved.path(), {.tokenizer = from.path() / "tokenizer.json"});
  CHECK(tests::read_json(config).at("eos_token") == "</s>");
  write(file, "of this folder");
  models::save_pretrained(model, saved.path(), {.tokenizer = saved.path() / "tokenizer.json"});
  CHECK(content(file) == "of this folder");
}

TEST_CASE("a double that no float holds is not saved as infinity") {
  const ChangedFolder from("llama");
  const tests::TemporaryFolder saved;
  models::Llama<Float64> model(models::llama_options(from.path()));
  model.initialize({.seed = 1});
  const int index = model.store().find("model.norm.weight");
  const Tensor<double> values = model.store().read_values<double>(index);
  values.data()[0] = -1e39;
  model.store().write_values(index, values);
  CHECK_THAT(refusal([&] { models::save_pretrained(model, saved.path()); }),
             ContainsSubstring("too large for weights of float32") && ContainsSubstring("name model.norm.weight") &&
                 ContainsSubstring("wanted a magnitude of at most 3.402e38; had -1e+39"));
}

TEST_CASE("the factor of the experts' balance stays in a folder where it counts and where it does not") {
  for (const char* name : {"mixtral", "qwen2_moe", "qwen3_moe"}) {
    for (const bool counts : {false, true}) {
      for (const json& factor : {json(0.02), json(0.0), json()}) {
        CAPTURE(name, counts, factor.dump());
        const ChangedFolder folder(name);
        json config = folder.config();
        config["output_router_logits"] = counts;
        config["router_aux_loss_coef"] = factor;
        if (factor.is_null()) config.erase("router_aux_loss_coef");
        folder.set_config(config);
        const double wanted = factor.is_null() ? 0.001 : factor.get<double>();
        const models::LlamaOptions options = models::llama_options(folder.path());
        CHECK(options.experts.auxiliary_loss == (counts ? wanted : 0));
        models::Llama<Float32> model(options);
        model.initialize({.seed = 1});
        models::save_pretrained(model, folder.path() / "saved");
        const json saved = tests::read_json(folder.path() / "saved" / "config.json");
        CHECK(saved.at("output_router_logits") == (counts && wanted > 0));
        CHECK(saved.at("router_aux_loss_coef") == wanted);
      }
    }
  }
}

TEST_CASE("options are saved as a family that has them, or refused") {
  const tests::TemporaryFolder folder;
  const auto family_of = [&](const models::LlamaOptions& options) {
    models::Llama<Float32> model(options);
    model.initialize({.seed = 1});
    models::save_pretrained(model, folder.path() / "saved");
    const models::LlamaOptions again = models::llama_options(folder.path() / "saved");
    CHECK(again.window == options.window);
    CHECK(again.attention_bias == options.attention_bias);
    CHECK(again.mlp_bias == options.mlp_bias);
    models::Llama<Float32> loaded(again);
    models::load_pretrained(loaded, folder.path() / "saved");
    return tests::read_json(folder.path() / "saved" / "config.json").at("model_type").get<std::string>();
  };
  const models::LlamaOptions small{.layers = 2, .heads = 2, .width = 16, .hidden = 8, .vocabulary = 11};
  const auto with = [&](const auto& change) {
    models::LlamaOptions options = small;
    change(options);
    return options;
  };
  CHECK(family_of(small) == "llama");
  CHECK(family_of(with([](auto& o) { o.windowed = {false, false}; })) == "llama");
  CHECK(family_of(with([](auto& o) { o.attention_bias = o.output_bias = o.mlp_bias = true; })) == "llama");
  CHECK(family_of(with([](auto& o) { o.window = 4; })) == "mistral");
  CHECK(family_of(with([](auto& o) { o.window = 4, o.windowed = {true, true}; })) == "mistral");
  CHECK(family_of(with([](auto& o) { o.width = 15, o.head_size = 8; })) == "mistral");
  CHECK(family_of(with([](auto& o) { o.attention_bias = true; })) == "qwen2");
  CHECK(family_of(with([](auto& o) { o.attention_bias = true, o.window = 3, o.windowed = {true, false}; })) == "qwen2");
  CHECK(family_of(with([](auto& o) { o.query_key_norm = true; })) == "qwen3");
  CHECK(family_of(with([](auto& o) { o.experts = {.count = 3}; })) == "mixtral");
  CHECK(family_of(with([](auto& o) { o.experts = {.count = 3, .hidden = 12}, o.window = 4; })) == "mixtral");
  CHECK(family_of(with([](auto& o) {
          o.experts = {.count = 3, .shared_hidden = 4, .shared_gate = true}, o.attention_bias = true;
        })) == "qwen2_moe");
  CHECK(family_of(with([](auto& o) { o.experts = {.count = 3, .renormalise = false}, o.query_key_norm = true; })) ==
        "qwen3_moe");
  const auto refused = [&](const auto& change) {
    return refusal([&] { family_of(with(change)); }).find("no model of transformers has") != std::string::npos;
  };
  CHECK(refused([](auto& o) { o.output_bias = true; }));
  CHECK(refused([](auto& o) { o.experts = {.count = 3, .renormalise = false}; }));
  CHECK(refused([](auto& o) { o.experts = {.count = 3, .capacity_factor = 1}; }));
  CHECK(refused([](auto& o) { o.experts = {.count = 3, .shared_hidden = 4}; }));
  CHECK(refused([](auto& o) { o.experts = {.count = 3}, o.attention_bias = true; }));
  CHECK(refused([](auto& o) { o.experts = {.count = 3}, o.mlp_bias = true; }));
  CHECK(refused([](auto& o) { o.window = 4, o.windowed = {true, false}; }));
  CHECK(refused([](auto& o) { o.query_key_norm = o.mlp_bias = true; }));
  CHECK(refused([](auto& o) { o.attention_bias = o.output_bias = true, o.width = 15, o.head_size = 8; }));
}

TEST_CASE("a folder of shards that is written into holds the new weights") {
  const ChangedFolder folder("llama_grouped_tied_llama3");
  models::Llama<Float32> model(models::llama_options(folder.path()));
  model.initialize({.seed = 3});
  models::save_pretrained(model, folder.path(), {.from = folder.path()});
  models::Llama<Float32> again(models::llama_options(folder.path()));
  models::load_pretrained(again, folder.path());
  const Tensor<std::int32_t> tokens = Tensor<std::int32_t>::from({1, 3}, std::vector<std::int32_t>{1, 5, 2});
  CHECK(std::ranges::equal(model.logits(tokens).value().span(), again.logits(tokens).value().span()));
  CHECK(!fs::exists(folder.path() / "model.safetensors.index.json"));
  CHECK(folder.config().at("eos_token_id") == 2);
  models::save_pretrained(model, folder.path() / "alone");
  CHECK(tests::read_json(folder.path() / "alone" / "config.json").at("eos_token_id").is_null());
}

TEST_CASE("a config of transformers 4 says the same") {
  const ChangedFolder folder("llama_grouped_tied_llama3");
  const models::LlamaOptions wanted = models::llama_options(folder.path());
  json config = folder.config();
  json rope = config.at("rope_parameters");
  config.erase("rope_parameters");
  config["rope_theta"] = rope.at("rope_theta");
  rope.erase("rope_theta");
  config["rope_scaling"] = rope;
  config.erase("head_dim");
  folder.set_config(config);
  const models::LlamaOptions options = models::llama_options(folder.path());
  CHECK(options.rotary_base == wanted.rotary_base);
  CHECK(options.rotary_scaling.kind == wanted.rotary_scaling.kind);
  CHECK(options.rotary_scaling.factor == wanted.rotary_scaling.factor);
  CHECK(options.rotary_scaling.trained_positions == wanted.rotary_scaling.trained_positions);
}

TEST_CASE("weights that are missing, unexpected or of another shape are listed, and allowed where asked") {
  const ChangedFolder folder("llama");
  const fs::path weights = folder.path() / "model.safetensors";
  const models::LlamaOptions options = models::llama_options(folder.path());
  const auto load = [&](models::LlamaOptions changed, const nn::LoadOptions& load_options = {}) {
    models::Llama<Float32> model(changed);
    model.initialize({.seed = 1});
    return models::load_pretrained(model, folder.path(), load_options);
  };
  models::LlamaOptions more = options;
  ++more.layers;
  const std::string missing = refusal([&] { load(more); });
  CHECK_THAT(missing, ContainsSubstring("lacks a tensor of the model"));
  CHECK_THAT(missing, ContainsSubstring("model.layers.2.self_attn.q_proj.weight, model.layers.2.self_attn.k_proj.weight"));
  CHECK_THAT(missing, ContainsSubstring("and 1 more"));
  models::LlamaOptions fewer = options;
  --fewer.layers;
  CHECK_THAT(refusal([&] { load(fewer); }), ContainsSubstring("that the model lacks; name model.layers.1."));
  models::LlamaOptions wider = options;
  wider.hidden *= 2;
  CHECK_THAT(refusal([&] { load(wider); }), ContainsSubstring("mlp.gate_proj.weight"));
  models::LlamaOptions grouped = options;
  grouped.kv_heads = 2;
  CHECK_THAT(refusal([&] { load(grouped); }), ContainsSubstring("k_proj.weight"));
  const nn::LoadedWeights loaded = load(more, {.allow_missing = true});
  CHECK(loaded.missing.size() == 9);
  CHECK(loaded.unexpected.empty());
  CHECK(load(fewer, {.allow_missing = true}).unexpected.size() == 9);

  fs::resize_file(weights, fs::file_size(weights) - 5);
  CHECK_THAT(refusal([&] { load(options); }), ContainsSubstring("model.safetensors"));
  fs::remove(weights);
  CHECK_THAT(refusal([&] { load(options); }), ContainsSubstring("has neither model.safetensors nor"));
}

TEST_CASE("an index of shards that lies is refused") {
  const ChangedFolder folder("llama_grouped_tied_llama3");
  const fs::path path = folder.path() / "model.safetensors.index.json";
  const json index = tests::read_json(path);
  models::Llama<Float32> model(models::llama_options(folder.path()));
  const auto said = [&](const std::string& text) {
    write(path, text);
    return refusal([&] { models::load_pretrained(model, folder.path()); });
  };
  const auto with = [&](const char* tensor, const json& shard) {
    json changed = index;
    changed["weight_map"][tensor] = shard;
    return said(changed.dump());
  };
  CHECK_THAT(said("{"), ContainsSubstring("is no JSON object"));
  CHECK_THAT(said("{\"weight_map\": {}}"), ContainsSubstring("no weight_map"));
  CHECK_THAT(with("model.norm.weight", 3), ContainsSubstring("names no file for model.norm.weight"));
  CHECK_THAT(with("model.norm.weight", "../model.safetensors"), ContainsSubstring("no file beside it"));
  CHECK_THAT(with("model.norm.weight", "absent.safetensors"), ContainsSubstring("absent.safetensors"));
  CHECK_THAT(with("model.norm.weight", "model-00001-of-00006.safetensors"), ContainsSubstring("which it does not"));
  CHECK(said(index.dump()) == "no error");
}
