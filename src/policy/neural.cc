// SPDX-License-Identifier: Apache-2.0
#include "policy/neural.h"

#include <algorithm>

#include "base/check.h"
#include "nn/checkpoint.h"
#include "nn/softmax.h"
#include "policy/checkpoint.h"

namespace rudderfish {
namespace {

class NeuralMemory final : public Memory {
 public:
  explicit NeuralMemory(const GraphWidths& widths) : workspace(nn::Workspace::Keep::kNothing) {
    questions.widths = widths;
  }

  GraphBatch questions;
  nn::Workspace workspace;
  std::vector<float> logits, stop, value, log_probabilities, probabilities;
};

template <class T>
std::span<T> First(std::vector<T>* buffer, size_t n) {
  if (buffer->size() < n) buffer->resize(n);
  return std::span(buffer->data(), n);
}

}  // namespace

NeuralPolicy::NeuralPolicy(std::string name, std::shared_ptr<const nn::CandidateNet> net)
    : name_(std::move(name)), net_(std::move(net)) {}

std::unique_ptr<Memory> NeuralPolicy::NewMemory(uint64_t) const {
  return std::make_unique<NeuralMemory>(net_->shape().widths);
}

void NeuralPolicy::Decide(std::span<Ask> asks, std::span<Answer> answers) const {
  CHECK_EQ(asks.size(), answers.size());
  if (asks.empty()) return;
  // One pass for all, in the memory of the first.
  auto& memory = static_cast<NeuralMemory&>(*asks[0].memory);
  GraphBatch& questions = memory.questions;
  questions.Clear();
  for (Ask& ask : asks) ask.task->Encode(ask.model, ask.question, ask.space, &questions);
  const int count = questions.samples;
  const size_t alternatives = nn::AlternativeCount(questions.candidate_begin);
  const auto logits = First(&memory.logits, questions.ends.size());
  const auto stop = First(&memory.stop, count);
  const auto value = First(&memory.value, count);
  const auto log_probabilities = First(&memory.log_probabilities, alternatives);
  const auto probabilities = First(&memory.probabilities, alternatives);
  net_->Forward(questions, 0, count, &memory.workspace, logits, stop, value);
  nn::Softmax(questions.candidate_begin, logits, stop, {}, log_probabilities, probabilities,
              net_->kernels());
  for (int i = 0; i < count; ++i) {
    const int candidates = questions.candidate_count(i);
    const auto scores = log_probabilities.subspan(questions.candidate_begin[i] + i, candidates + 1);
    const int best = nn::ArgmaxAlternative(scores);
    answers[i].choice = best == candidates ? kStop : best;
    answers[i].value = value[i];
    answers[i].scores.assign(scores.begin(), scores.end());
  }
}

void DescribeTask(const Task& task, nn::SafetensorsFile* file) {
  file->SetMetadata("task", std::string(task.name()));
  file->SetMetadata("features", task.FeatureHash());
  file->SetMetadata("objective", "latency");
}

Result<void> CheckTask(const nn::SafetensorsFile& file, const Task& task) {
  TRY(CheckTrainedFor(file, task.name()));
  TRY_ASSIGN(const std::string features, file.Metadata("features"));
  if (features != task.FeatureHash()) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: trained on other features (table {}) than the task gives (table {}); train it "
                "again, or set the `features` it was trained with (in `task` of the scenario or "
                "`objective` of the configuration)",
                file.source_name(), features, task.FeatureHash());
  }
  TRY_ASSIGN(const std::string objective, file.Metadata("objective"));
  if (objective != "latency") {
    return Fail(ErrorCode::kFailedPrecondition, "{}: trained for the objective {}, not latency",
                file.source_name(), objective);
  }
  return {};
}

Result<std::shared_ptr<nn::CandidateNet>> LoadMemorylessNet(const nn::SafetensorsFile& file,
                                                            const GraphWidths& widths) {
  TRY_ASSIGN(const nn::NetShape shape, nn::StoredNetShape(file));
  if (!(shape.widths == widths)) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: the network's rows are not as wide as the task's features",
                file.source_name());
  }
  if (shape.memory() > 0) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{}: its network remembers the questions before, which only scaling asks in order",
                file.source_name());
  }
  auto net = std::make_shared<nn::CandidateNet>(shape);
  TRY(nn::LoadNet(file, net.get()));
  return net;
}

Result<std::unique_ptr<Policy>> LoadNeuralPolicy(const std::filesystem::path& path,
                                                 const Task& task) {
  TRY_ASSIGN(const nn::SafetensorsFile file, OpenCheckpoint(path));
  TRY(CheckTask(file, task));
  TRY_ASSIGN(auto net, LoadMemorylessNet(file, task.widths()));
  return std::make_unique<NeuralPolicy>(path.string(), std::move(net));
}

}  // namespace rudderfish
