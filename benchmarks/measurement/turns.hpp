#pragma once

#include <functional>
#include <optional>
#include <string>

// A program that takes turns with others, so that each pair of measurements sees the same machine: it sleeps until it is told
// what to do next. benchmarks/report asks, through named pipes in `folder`: rank r reads a line with a name from request.r, and
// rank 0 writes a line of JSON, {"value": number}, to answers.
//
// `measure` is called on all ranks with the name and returns what rank 0 answers: seconds, mostly, or nothing where this
// machine does not have it, and the value is null. Serves until the pipes are closed and returns 0.
int take_turns(int rank, const std::string& folder, const std::function<std::optional<double>(const std::string&)>& measure);

// For `measure`: there is nothing of that name.
[[noreturn]] void refuse_turn(const std::string& name);
