#include "fuzz/model_parsers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>

#include "fuzz/inputs.hpp"
#include "nn/weights/weight_files.hpp"
#include "temporary_folder.hpp"
#include "tokenizers/files/folder_tokens.hpp"
#include "tokenizers/files/tiktoken.hpp"
#include "tokenizers/files/tokenizer_json.hpp"
#include "trireme/data/documents/conversations.hpp"
#include "trireme/models/folders/adapter.hpp"
#include "trireme/models/folders/hugging_face.hpp"

namespace trireme::fuzz {
namespace {

void check_sizes(const auto& options) {
  check(options.layers > 0 && options.heads > 0 && options.width % options.heads == 0, "a model of no sizes");
}

// As the config of each family.
void read_model_config(Bytes bytes) {
  const MemoryFile content(bytes);
  answer([&] {
    const models::LlamaOptions options = models::llama_options(content.path());
    check(options.layers > 0 && options.heads > 0 && options.heads % options.kv_heads == 0, "a model of no sizes");
    check(options.windowed.empty() || std::ssize(options.windowed) == options.layers, "windows of other layers");
  });
  answer([&] { check_sizes(models::gpt_options(content.path())); });
  answer([&] { check_sizes(models::gpt_neox_options(content.path())); });
  answer([&] { check_sizes(models::bert_options(content.path())); });
  answer([&] { check_sizes(models::vit_options(content.path())); });
}

std::vector<std::string> config_seeds() {
  const std::string sizes =
      R"("hidden_size":8,"intermediate_size":9,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":7)";
  return {
      R"({"model_type":"llama",)" + sizes + R"(,"rope_parameters":{"rope_type":"llama3","rope_theta":5e3,"factor":4,)" +
          R"("low_freq_factor":1,"high_freq_factor":4.0,"original_max_position_embeddings":32},"mlp_bias":true})",
      R"({"model_type":"qwen3",)" + sizes +
          R"(,"num_key_value_heads":1,"head_dim":4,"use_sliding_window":true,"sliding_window":5,)" +
          R"("layer_types":["full_attention","sliding_attention"],"rope_scaling":{"type":"yarn","factor":2}})",
      R"({"model_type":"mixtral",)" + sizes +
          R"(,"num_key_value_heads":2,"num_local_experts":4,"num_experts_per_tok":2,"output_router_logits":true,)" +
          R"("router_aux_loss_coef":0.02})",
      std::string(R"({"model_type":"gpt2","n_embd":8,"n_layer":2,"n_head":2,"n_positions":9,"vocab_size":7,)") +
          R"("activation_function":"gelu_new","attn_pdrop":0.1,"n_inner":null})",
      R"({"model_type":"gpt_neox",)" + sizes + R"(,"hidden_act":"gelu","max_position_embeddings":9,"rotary_pct":0.5,)" +
          R"("rotary_emb_base":5000,"use_parallel_residual":false})",
      R"({"model_type":"bert","architectures":["BertForSequenceClassification"],)" + sizes + R"(,"type_vocab_size":2,)" +
          R"("max_position_embeddings":9,"hidden_act":"gelu","id2label":{"0":"cat","1":"dog"}})",
      std::string(R"({"model_type":"deit","architectures":["DeiTForImageClassificationWithTeacher"],"hidden_size":8,)") +
          R"("intermediate_size":9,"num_hidden_layers":2,"num_attention_heads":2,"image_size":8,"patch_size":4,"num_channels":3,)" +
          R"("hidden_act":"gelu","id2label":{"0":"cat","1":"dog"}})"};
}

// In a folder under the name that the parser looks for.
template <typename Read>
void read_in_folder(Bytes bytes, const char* name, const Read& read) {
  static const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / name;
  std::ofstream(path, std::ios::binary) << text_of(bytes);
  answer([&] { read(folder.path()); });
  std::filesystem::remove(path);
}

void read_adapter(Bytes bytes) {
  read_in_folder(bytes, "adapter_config.json", [](const std::filesystem::path& folder) {
    const LoraOptions options = models::lora_options(folder);
    check(options.rank > 0 && !options.targets.empty(), "an adapter of nothing");
  });
}

std::vector<std::string> adapter_seeds() {
  return {R"({"peft_type":"LORA","r":3,"lora_alpha":6,"lora_dropout":0.1,"target_modules":["q_proj","v_proj"],)"
          R"("use_rslora":true,"bias":"none","task_type":"CAUSAL_LM","rank_pattern":{},"init_lora_weights":true})",
          R"({"peft_type":"LORA","target_modules":"all-linear","modules_to_save":null,"fan_in_fan_out":false})"};
}

void read_image_processor(Bytes bytes) {
  read_in_folder(bytes, "preprocessor_config.json", [](const std::filesystem::path& folder) {
    answer([&] { check(models::image_normalization(folder).has_value(), "no normalization"); });
    const data::Resizing resizing = models::image_resizing(folder, 8);
    check(std::max(resizing.height, resizing.shorter) >= 8, "images are too small");
  });
}

std::vector<std::string> image_processor_seeds() {
  return {
      R"({"image_processor_type":"ViTImageProcessor","size":{"shortest_edge":10},"do_center_crop":true,"crop_size":8,)"
      R"("resample":3,"do_rescale":true,"image_mean":[0.5,0.5,0.5],"image_std":[0.5,1,2e-1]})",
      R"({"feature_extractor_type":"DeiTFeatureExtractor","size":{"height":8,"width":9},"crop_size":{"height":8,"width":8}})"};
}

void read_template(Bytes bytes) {
  static const tokenizers::Tokenizer tokenizer = tokenizers::Tokenizer::bytes();
  read_in_folder(bytes, "tokenizer_config.json", [](const std::filesystem::path& folder) {
    const auto name = tokenizers::ChatTemplate::known_in(folder, tokenizer);
    const tokenizers::ChatTemplate chat(name.value_or("plain"), tokenizer, tokenizers::text_marks(tokenizer, folder));
    const auto [tokens, learnt] = chat.encode({{{"user", "a"}, {"assistant", "b"}}});
    check(tokens.size() == learnt.size() && std::ranges::count(learnt, true) > 0, "an answer is not learnt");
  });
}

std::vector<std::string> template_seeds() {
  return {
      R"({"bos_token":"<s>","eos_token":{"content":"</s>"},"chat_template":"<|im_start|> <|im_end|>"})",
      R"({"chat_template":[{"name":"default","template":"<|user|> <|assistant|> eos_token"}]})",
      R"({"chat_template":"{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m.content + '<|im_end|>\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant' }}{%- endif -%}"})",
      R"({"chat_template":"{# a #}\n{%- set x = (messages[1:] | trim) ~ 'a' -%}\n{% if not x is defined %}b{% elif x == 1 %}b{% else %}b{% endif %}"})"};
}

void read_added_tokens(Bytes bytes) {
  read_in_folder(bytes, "tokenizer_config.json", [](const std::filesystem::path& folder) {
    for (const auto& stored : tokenizers::folder_tokens(folder)) check(stored.token.number >= 0, "a token has no number");
  });
}

std::vector<std::string> added_token_seeds() {
  return {
      R"({"added_tokens_decoder":{"3":{"content":"<s>","lstrip":true,"normalized":false,"special":true},"7":{"content":"a"}}})"};
}

// Those that are read are encoded, a few tokens of each.
void read_conversations(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    const auto conversations = data::read_conversations(content.path());
    const tokenizers::ChatTemplate chat("plain", tokenizers::Tokenizer::bytes(), {.begin = "", .end = std::string(1, '\0')});
    const auto encoded = data::encode_conversations(chat, conversations, 9);
    check(encoded.documents.size() + encoded.num_left_out == std::ssize(conversations), "a conversation is lost");
    check(encoded.num_learnt > 0 && encoded.documents.num_tokens() <= 9 * encoded.documents.size(), "documents are too long");
  });
}

std::vector<std::string> conversation_seeds() {
  return {R"({"prompt":"2 + 2?","completion":"4","source":["a",1.5,null]})"
          "\n\n"
          R"({"messages":[{"role":"system","content":"Ja"},{"role":"user","content":"\u00e9\ud83d\ude00"},)"
          R"({"role":"assistant","content":"Good day"}]})"
          "\r\n"};
}

void read_shards(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    for (const auto& [tensor, shard] : nn::read_shard_index(content.path())) {
      check(shard.find('/') == std::string::npos && !shard.empty(), "a shard in another folder");
    }
  });
}

std::vector<std::string> shard_seeds() {
  return {R"({"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"x"}})"};
}

// A text is encoded, and what comes of it decoded.
void use(const std::shared_ptr<const tokenizers::detail::Codec>& codec) {
  const tokenizers::Tokenizer tokenizer(codec);
  for (const std::string_view text : {"", "ab c\xC3\xA9 <s>aabb12", "AB  c\n\n"}) {
    answer([&] {
      const auto encoding = tokenizer.encode_with_offsets(text);
      check(encoding.offsets.size() == encoding.tokens.size(), "tokens without places");
      for (const Range& range : encoding.offsets) {
        check(range.begin >= 0 && range.begin <= range.end && range.end <= std::ssize(text), "a place outside the text");
      }
      check(tokenizer.encode(text) == encoding.tokens, "a text has other tokens where offsets are asked for");
      answer([&] { tokenizer.decode(encoding.tokens); });
    });
  }
}

void read_tokenizer(Bytes bytes) {
  answer([&] {
    const MemoryFile content(bytes);
    use(tokenizers::read_tokenizer_json(content.path()));
  });
}

std::vector<std::string> tokenizer_seeds() {
  return {
      R"({"added_tokens":[{"id":5,"content":"<s>","special":true,"normalized":false,"lstrip":true}],)"
      R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"String":" "},"content":"b"}]},)"
      R"("pre_tokenizer":{"type":"Metaspace","replacement":"c","prepend_scheme":"first"},)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},)"
      R"({"Sequence":{"id":"A","type_id":1}}],"special_tokens":{"<s>":{"ids":[5]}}},)"
      R"("decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1}]},)"
      R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"ab":3,"<unk>":4},"merges":["a b"],"unk_token":"<unk>","fuse_unk":true}})",
      R"({"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a|[^\\sb]+"},)"
      R"("behavior":"Isolated"},{"type":"ByteLevel","add_prefix_space":true}]},"decoder":{"type":"ByteLevel"},)"
      R"("model":{"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}})",
      R"({"normalizer":{"type":"BertNormalizer","lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},)"
      R"("post_processor":{"type":"BertProcessing","sep":["b",1],"cls":["a",0]},"decoder":{"type":"WordPiece"},)"
      R"("model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2},"unk_token":"[UNK]"}})"};
}

void read_ranks(Bytes bytes) {
  answer([&] {
    std::vector<std::string> lines;
    std::string_view rest = text_of(bytes);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      lines.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    use(tokenizers::tiktoken_codec(lines, "ranks", {}));
  });
}

std::vector<std::string> rank_seeds() {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string all;
  for (std::size_t byte = 0; byte < 256; ++byte)
    all += fmt::format("{}{}== {}\n", digits[byte / 4], digits[byte % 4 * 16], byte);
  return {all + "YWI= 256\n"};
}

constexpr std::array parsers_of_models{Parser{"config", read_model_config, config_seeds},
                                       Parser{"shards", read_shards, shard_seeds},
                                       Parser{"adapter", read_adapter, adapter_seeds},
                                       Parser{"image_processor", read_image_processor, image_processor_seeds},
                                       Parser{"tokenizer", read_tokenizer, tokenizer_seeds},
                                       Parser{"tiktoken", read_ranks, rank_seeds},
                                       Parser{"chat_template", read_template, template_seeds},
                                       Parser{"added_tokens", read_added_tokens, added_token_seeds},
                                       Parser{"conversations", read_conversations, conversation_seeds}};

}  // namespace

std::span<const Parser> model_parsers() { return parsers_of_models; }

}  // namespace trireme::fuzz
