#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trireme/autograd/model.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/files/location.hpp"
#include "trireme/models/architectures/gpt.hpp"

// Reads models from a trainer's checkpoints. The folder `model` beside the checkpoints, or their settings, describe the model.

// Whether the path is a checkpoint; or a directory with checkpoints or of a running job that will save there.
bool is_checkpoint(const trireme::Location& path);
bool is_run(const trireme::Location& path);

// The folder of config.json and the tokenizer of a checkpoint's model. Empty: the model is a GPT of train_gpt.
trireme::Location description_of(const trireme::Location& checkpoint);
trireme::models::GptOptions gpt_options_of(const trireme::Location& checkpoint);

// Loads the model from a checkpoint. A tensor that only one of them has is an Error. Collective.
void load_checkpoint(trireme::Model& model, const trireme::Location& checkpoint, const trireme::Group& world);

// Calls body(folder, step). A folder of transformers or a checkpoint is passed as it is. For a directory of checkpoints, the
// newest one is passed, or if it is removed meanwhile, the next one. `watch`: also passes each newer checkpoint, until no job
// saves there any more. Collective.
void for_each_model(const trireme::Group& world, const trireme::Location& path, bool watch,
                    const std::function<void(const trireme::Location& folder, std::optional<std::int64_t> step)>& body);

// Inserts the step as the first member into a line of JSON.
std::string with_step(const std::string& line, std::optional<std::int64_t> step);
