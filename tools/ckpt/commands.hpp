#pragma once

#include <filesystem>
#include <string>
#include <vector>

// The commands of trireme-ckpt. Each prints its findings and returns the exit code. A `run` is the folder of a checkpoint, or a
// directory of checkpoints; then the newest one is used.
namespace trireme::ckpt {

int list(const std::string& directory);
int inspect(const std::string& run);
int verify(const std::vector<std::string>& runs);               // 1: a checkpoint is damaged
int diff(const std::string& first, const std::string& second);  // 1: they differ

struct ExportOptions {
  std::string run;
  std::string file;
  std::string prefix = "model.";       // the tensors with this prefix are exported; the file has their names without it
  std::string format = "huggingface";  // the format of GPT-2, in which some matrices are transposed; or "plain"
};
int export_weights(const ExportOptions& options);

// The inverse, for a GPT-2 file of transformers: writes a checkpoint of step 0 into a directory without checkpoints.
int import_weights(const std::string& file, const std::string& directory);

int prune(const std::string& directory, int keep);
int clean(const std::string& directory);

}  // namespace trireme::ckpt
