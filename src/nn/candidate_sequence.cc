// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.h"
#include "nn/candidate_net.h"
#include "nn/candidate_pass.h"

namespace rudderfish::nn {
namespace {

// Of a pass through time: outputs, derivatives by them, what is carried from step to step, and what
// Backward of one step needs.
struct SequenceMemory {
  std::span<float> logits, dlogits, stop, dstop, value, dvalue, memory, dmemory;
  std::byte* scratch = nullptr;

  SequenceMemory(size_t candidates, size_t samples, size_t remembered, size_t scratch_bytes,
                 Carver* carver) {
    const auto take = [carver](size_t n) { return std::span(carver->Take<float>(n), n); };
    logits = take(candidates);
    dlogits = take(candidates);
    for (std::span<float>* outputs : {&stop, &dstop, &value, &dvalue}) *outputs = take(samples);
    memory = take(remembered);
    dmemory = take(remembered);
    scratch = carver->Take<std::byte>(scratch_bytes);
  }
};

// Clears the rows of lanes in which an episode begins.
void Forget(std::span<const uint8_t> fresh, std::span<float> rows) {
  const size_t width = rows.size() / fresh.size();
  for (size_t lane = 0; lane < fresh.size(); ++lane) {
    if (fresh[lane] != 0) std::ranges::fill(rows.subspan(lane * width, width), 0.0F);
  }
}

}  // namespace

void CandidateNet::AccumulateSequenceGradient(const GraphBatch& batch, const Sequences& sequences,
                                              Workspace* workspace,
                                              void (*loss)(void*, const Heads&), void* context,
                                              std::span<float> gradient) const {
  const int lanes = sequences.lanes, samples = batch.samples;
  CHECK_GT(lanes, 0);
  CHECK_EQ(samples % lanes, 0);
  CHECK_EQ(gradient.size(), parameters_.size());
  CHECK_EQ(sequences.before.size(), Floats(lanes, shape_.memory()));
  CHECK_EQ(sequences.fresh.size(), static_cast<size_t>(samples));
  CandidatePass pass(*this, batch, workspace);
  pass.TransposeWeights();
  workspace->kept_count_ = -1;
  size_t activation_bytes = 0, scratch_bytes = 0;
  for (int s = 0; s < samples; s += lanes) {
    const Block block(batch, s, lanes);
    activation_bytes += pass.ActivationBytes(block);
    scratch_bytes = std::max(scratch_bytes, pass.ScratchBytes(block));
  }
  const auto carve = [&](Carver* carver) {
    return SequenceMemory(static_cast<size_t>(batch.candidate_begin[samples]),
                          static_cast<size_t>(samples), sequences.before.size(), scratch_bytes,
                          carver);
  };
  Carver sum(nullptr);
  carve(&sum);
  Carver carver(Workspace::Grow(&workspace->scratch_, sum.used()));
  const SequenceMemory m = carve(&carver);

  std::byte* at = Workspace::Grow(&workspace->activations_, activation_bytes);
  std::ranges::copy(sequences.before, m.memory.begin());
  for (int s = 0; s < samples; s += lanes) {
    const Block block(batch, s, lanes);
    pass.Enter(block, at);
    Forget(sequences.fresh.subspan(s, lanes), m.memory);
    pass.Forward(m.logits.subspan(block.candidate0, block.candidates), m.stop.subspan(s, lanes),
                 m.value.subspan(s, lanes), m.memory);
    at += pass.ActivationBytes(block);
  }
  loss(context, Heads{.first = 0,
                      .count = samples,
                      .logits = m.logits,
                      .stop = m.stop,
                      .value = m.value,
                      .dlogits = m.dlogits,
                      .dstop = m.dstop,
                      .dvalue = m.dvalue});
  std::ranges::fill(m.dmemory, 0.0F);
  for (int s = samples - lanes; s >= 0; s -= lanes) {
    const Block block(batch, s, lanes);
    at -= pass.ActivationBytes(block);
    pass.Enter(block, at);
    pass.Backward(m.scratch, m.dlogits.subspan(block.candidate0, block.candidates),
                  m.dstop.subspan(s, lanes), m.dvalue.subspan(s, lanes), gradient.data(),
                  m.dmemory.data());
    Forget(sequences.fresh.subspan(s, lanes), m.dmemory);
  }
}

}  // namespace rudderfish::nn
