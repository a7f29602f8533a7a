// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "control/evidence.h"
#include "control/journal.h"

// The journal as a controller writes it. A row is written only while the controller leads, which is
// checked right before each row, so that two instances never both write. `Calls::on_row` is told of
// each row whose fate is known. Evidence that a standby gathers is not written, and is no error.
// Not thread safe.

namespace rudderfish {

class FencedJournal final : public Journal, public EvidenceSink {
 public:
  struct Calls {
    std::function<bool()> leads;
    std::function<void(const JournalRow&)> on_row;  // Its fate is known.
  };

  // Both outlive it.
  FencedJournal(Journal* journal, EvidenceSink* evidence, Calls calls)
      : journal_(journal), evidence_(evidence), calls_(std::move(calls)) {}

  Result<int64_t> Append(JournalRow row) override;

  // Of a row that is there already: also by who leads no more.
  Result<void> Conclude(int64_t number, const RowEnd& end) override;
  Result<void> AppendEvidence(const EvidenceRow& row) override;

  // Why the last row could not be written; empty: it was.
  const std::string& trouble() const { return trouble_; }

 private:
  template <class T>
  Result<T> Noted(Result<T> result);

  Journal* journal_;
  EvidenceSink* evidence_;
  Calls calls_;
  std::map<int64_t, JournalRow> in_flight_;  // By number.
  std::string trouble_;
};

}  // namespace rudderfish
