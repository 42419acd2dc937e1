#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trireme/autograd/model.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/files/location.hpp"
#include "trireme/models/architectures/gpt.hpp"

// Models in the checkpoints of a trainer, which says in the folder `model` beside them, or in their settings, which ones they
// are.

// Whether it is one checkpoint, or a directory of some or of a job that will save there.
bool is_checkpoint(const trireme::Location& path);
bool is_run(const trireme::Location& path);

// Where config.json and the tokenizer of a checkpoint's model lie; empty: it is a GPT of train_gpt.
trireme::Location description_of(const trireme::Location& checkpoint);
trireme::models::GptOptions gpt_options_of(const trireme::Location& checkpoint);

// Fills the model from a checkpoint. What only one of the two has is an Error. Collective.
void load_checkpoint(trireme::Model& model, const trireme::Location& checkpoint, const trireme::Group& world);

// Calls body(folder, step) with a folder of transformers or a checkpoint, as it is; of a run with its newest checkpoint, and
// where that goes away meanwhile with the one after it. `watch`: with each newer one too, until no job saves there any more.
// Collective.
void for_each_model(const trireme::Group& world, const trireme::Location& path, bool watch,
                    const std::function<void(const trireme::Location& folder, std::optional<std::int64_t> step)>& body);

// A line of JSON with the step before its other members.
std::string with_step(const std::string& line, std::optional<std::int64_t> step);
