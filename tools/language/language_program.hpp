#pragma once

#include <functional>
#include <string>

#include "command_line.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/device/with_device.hpp"
#include "trireme/files/location.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/precision/policy.hpp"

// Options of all programs that use a model in a folder of transformers.
struct LanguageOptions {
  std::string folder;
  bool watch = false;
  std::string adapter;  // empty: none
  std::string tokens = "text";
  std::string tokenizer;  // empty: the folder's, else bytes
  std::string precision = "fp32";
  std::string device = "cpu";

  void add_to(CLI::App& app);

  // Calls body(P(), D()) with the chosen precision and device.
  template <typename Body>
  void with_types(const Body& body) const {
    trireme::device::with_device(device, [&]<typename D>(D on) {
      if (precision == "bf16") {
        body(trireme::MixedBfloat16(), on);
      } else if (precision == "fp16") {
        body(trireme::MixedFloat16(), on);
      } else {
        body(trireme::Float32(), on);
      }
    });
  }
};

// Parses the command line and calls main on every rank. Messages appear once for all processes of a job. Returns the exit code.
int launch_language_program(CLI::App& app, int argc, char** argv, const LanguageOptions& options,
                            const std::function<void(const trireme::Group&)>& main);

// A context in which all ranks divide the model.
trireme::ModelContext divided_by_all(const trireme::Group& world);
