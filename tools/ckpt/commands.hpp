#pragma once

#include <filesystem>
#include <string>
#include <vector>

// What trireme-ckpt does: each prints what it finds and returns the exit code. A `run` is a checkpoint's folder, or a directory
// of checkpoints, which stands for its newest.
namespace trireme::ckpt {

int list(const std::string& directory);
int inspect(const std::string& run);
int verify(const std::vector<std::string>& runs);               // 1: damaged
int diff(const std::string& first, const std::string& second);  // 1: they differ

struct ExportOptions {
  std::string run;
  std::string file;
  std::string prefix = "model.";       // of the tensors to export; their names in the file lack it
  std::string format = "huggingface";  // GPT-2's, in which some matrices are transposed; or plain
};
int export_weights(const ExportOptions& options);

// The inverse for a GPT-2 as transformers writes it: a checkpoint of step 0 in a directory that has none.
int import_weights(const std::string& file, const std::string& directory);

int prune(const std::string& directory, int keep);
int clean(const std::string& directory);

}  // namespace trireme::ckpt
