#pragma once

#include <functional>
#include <optional>
#include <string>

// Makes a program take turns with others, so that each pair of measurements sees the same machine. The program sleeps until
// benchmarks/report asks for a measurement, through named pipes in `folder`: rank r reads a line with a name from request.r,
// and rank 0 writes a line of JSON, {"value": number}, to answers.
//
// `measure` is called on all ranks with the name. Rank 0 answers with its result, usually seconds; it returns nothing where
// this machine can't measure it, and the value is null. Serves until the pipes are closed, then returns 0.
int take_turns(int rank, const std::string& folder, const std::function<std::optional<double>(const std::string&)>& measure);

// The error of `measure` for an unknown name.
[[noreturn]] void refuse_turn(const std::string& name);
