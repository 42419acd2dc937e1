#include "time_to_quality/quality.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

void log_submission(const Mllog& log, const Submission& submission) {
  log.event("submission_benchmark", submission.benchmark);
  log.event("submission_org", "trireme");
  log.event("submission_division", "open");
  log.event("submission_status", "research");
  log.event("submission_platform", "cpu");
  log.event("seed", submission.seed);
  log.event("global_batch_size", submission.batch_size);
  log.event("opt_name", submission.optimizer);
  log.event("opt_base_learning_rate", submission.learning_rate);
  log.event("opt_learning_rate_warmup_steps", submission.warmup_steps);
  log.event("opt_weight_decay", submission.weight_decay);
  log.event("target_quality", submission.target);
}

int train_to_quality(const Mllog& log, const Quality& quality) {
  bool reached = false;
  for (std::int64_t step = 0; step < quality.most_steps && !reached;) {
    const std::int64_t count = std::min(quality.evaluate_every, quality.most_steps - step);
    const nlohmann::ordered_json block{{"first_epoch_num", step * quality.batch_size},
                                       {"epoch_count", count * quality.batch_size}};
    log.start("block_start", block);
    for (const std::int64_t end = step + count; step < end; ++step) quality.train(step);
    log.end("block_stop", block);
    const nlohmann::ordered_json done{{"epoch_num", step * quality.batch_size}, {"step", step}};
    log.start("eval_start", done);
    const double value = quality.evaluate();
    log.event("eval_accuracy", value, done);
    log.end("eval_stop", done);
    reached = quality.reached(value);
  }
  log.end("run_stop", {{"status", reached ? "success" : "aborted"}});
  return 0;
}
