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

// The options of train_lm for adapters, see docs/lora.md.
struct AdapterRecipe {
  int rank = 0;  // 0: trains all weights, unless `init` names an adapter
  double alpha = 16;
  double dropout = 0;
  std::string targets;  // with commas between them; empty: usual_targets() of the model
  bool rank_stabilized = false;
  std::string init;  // a PEFT folder with the adapter to start from
  std::string save;  // the PEFT folder to write

  bool is_given() const { return rank != 0 || !init.empty(); }
  // init_of_model: --init, read after parsing.
  void add_to(trireme::trainer::CommandLine& line, const std::string& init_of_model);

  // Throws before the first step if --save-adapter can't be written, if a folder would hold a model and an adapter, or if
  // --save would merge the adapter into the model of --init. This and the functions below are collective.
  void check_save(const trireme::trainer::Run& run, const std::string& save_of_model, const std::string& init_of_model) const;
  // The options of the adapter in `init`, or those given. Nothing: all weights are trained.
  std::optional<trireme::LoraOptions> options(const trireme::trainer::Run& run, const std::string& usual_targets) const;
  // Describes the model's adapters to the run, so that a resumed run must have the same.
  void describe(trireme::trainer::Run& run, const trireme::Model& model, const std::string& init_of_model) const;
  void load(const trireme::trainer::Run& run, trireme::Model& model) const;
  std::string about_parameters(const trireme::trainer::Run& run, trireme::Model& model) const;  // their number, as text
  void write(trireme::trainer::Run& run, trireme::Model& model, trireme::DType dtype, const std::string& base_model) const;

 private:
  std::optional<trireme::LoraOptions> read_options(const std::string& usual_targets) const;
  void check_apart(const std::string& save_of_model, const std::string& init_of_model) const;  // on one rank
};

// The targets if none are given: PEFT's defaults.
inline std::string usual_targets(const trireme::models::LlamaOptions&) { return "q_proj,v_proj"; }
inline std::string usual_targets(const trireme::models::GptOptions&) { return "c_attn"; }
inline std::string usual_targets(const trireme::models::GptNeoXOptions&) { return "query_key_value"; }
inline std::string usual_targets(const trireme::models::BertOptions&) { return "query,value"; }  // a BERT refuses adapters
