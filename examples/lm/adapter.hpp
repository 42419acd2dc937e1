#pragma once

#include <optional>
#include <string>

#include "trireme/autograd/lora_options.hpp"
#include "trireme/models/architectures/bert.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/architectures/gpt_neox.hpp"
#include "trireme/models/architectures/llama.hpp"
#include "trireme/trainer/command_line.hpp"
#include "trireme/trainer/run.hpp"

// What train_lm can be told of adapters, see docs/lora.md.
struct AdapterRecipe {
  int rank = 0;  // 0: all weights are trained, unless an adapter is gone on from
  double alpha = 16;
  double dropout = 0;
  std::string targets;  // with commas; empty: those of the model's kind
  bool rank_stabilized = false;
  std::string init;  // a folder of PEFT to go on from
  std::string save;  // one to write

  bool is_given() const { return rank != 0 || !init.empty(); }
  // init_of_model: --init, as the command line has it once it is read.
  void add_to(trireme::trainer::CommandLine& line, const std::string& init_of_model);

  // An Error before the first step where --save-adapter can't be written, where a folder would hold a model and an adapter, or
  // where --save would merge the adapter into the model that it is beside. Collective, as is all below.
  void check_save(const trireme::trainer::Run& run, const std::string& save_of_model, const std::string& init_of_model) const;
  // Of the folder to go on from, or as they were given. Nothing: all weights are trained.
  std::optional<trireme::LoraOptions> options(const trireme::trainer::Run& run, const std::string& usual_targets) const;
  // Those of the model: a run goes on with the same.
  void describe(trireme::trainer::Run& run, const trireme::Model& model, const std::string& init_of_model) const;
  void load(const trireme::trainer::Run& run, trireme::Model& model) const;
  std::string about_parameters(const trireme::trainer::Run& run, trireme::Model& model) const;  // how many, in words
  void write(trireme::trainer::Run& run, trireme::Model& model, trireme::DType dtype, const std::string& base_model) const;

 private:
  std::optional<trireme::LoraOptions> read_options(const std::string& usual_targets) const;
  void check_apart(const std::string& save_of_model, const std::string& init_of_model) const;  // on one rank
};

// PEFT's where nobody names any.
inline std::string usual_targets(const trireme::models::LlamaOptions&) { return "q_proj,v_proj"; }
inline std::string usual_targets(const trireme::models::GptOptions&) { return "c_attn"; }
inline std::string usual_targets(const trireme::models::GptNeoXOptions&) { return "query_key_value"; }
inline std::string usual_targets(const trireme::models::BertOptions&) { return "query,value"; }  // has none: its model says so
