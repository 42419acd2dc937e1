#pragma once

#include <string>

#include "sweep.hpp"

struct ReportOptions {
  std::string model = "gpt";
  std::string algorithm = "automatic";
  std::string progress = "thread";
  std::string json;
  std::string csv;
  std::string svg;
};

void print_table(const Sweep& sweep, const ReportOptions& options, int ranks);
void write_files(const Sweep& sweep, const ReportOptions& options, int ranks);  // throws where one can't be written
