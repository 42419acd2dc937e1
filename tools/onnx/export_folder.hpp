#pragma once

#include <cstdint>
#include <string>

#include "trireme/onnx/export.hpp"

struct FolderExport {
  std::string folder;      // a folder of transformers
  std::string checkpoint;  // of the same model; its weights replace those of the folder; empty: none
  std::string adapter;     // a folder of PEFT; it is merged into the weights; empty: none
  std::string output;
  std::int64_t external_data_above = trireme::onnx::ExportOptions().external_data_above;
};
trireme::onnx::Exported export_folder(const FolderExport& options);
