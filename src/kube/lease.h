// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api_client.h"

// Which of several instances leads: a Lease, held and taken over as client-go's leader election
// does it (15, 10, 2 s), so that any client's tools read it. Others wait for `duration` after the
// last change they saw; the holder fences itself `renew_deadline` after it sent the last renewal
// that succeeded, which is earlier, by any clock that runs evenly: so there are never two, however
// long the server cannot be reached. Dates in the Lease are for people; nothing is judged by them.
// To instances that have seen its holder, the deletion of a Lease is a change like others. Only the
// holder recreates it at once, or an instance that starts then and cannot know that there was one.
//
// The leader may leave word in the Lease for the next leader: an annotation, written by the same
// renewals and so by no other instance. The next leader has read it as it was left.
//
// A record that bears our identity but that we did not write is another's: of our predecessor,
// which ends by itself, or of a second instance of the same name, which is told.
// Owned by one thread; all is done from within ApiClient::Poll.

namespace rudderfish::kube {

struct LeaseOptions {
  std::string name_space;
  std::string name;
  std::string identity;  // Different for each instance that ever runs.
  Duration duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry = std::chrono::seconds(2);  // Half of it to 0.8 for who waits.
  std::string annotation;                    // In which word is left; empty: in none.
};

enum class Leadership { kFollowing, kLeading };

struct LeaseCounts {
  int64_t acquired = 0;
  int64_t lost = 0;
  int64_t renewals = 0;
  int64_t failures = 0;
};

class LeaseElection {
 public:
  // REQUIRES: `client` outlives this; retry < renew_deadline < duration.
  LeaseElection(ApiClient* client, LeaseOptions options,
                std::function<void(Leadership)> on_change = nullptr);
  ~LeaseElection();
  LeaseElection(const LeaseElection&) = delete;
  LeaseElection& operator=(const LeaseElection&) = delete;

  void Start();

  // Ask it right before every write: it becomes false by time alone.
  bool IsLeader() const { return is_holder_ && client_->clock().Now() < fence_; }

  // Gives the lease up, so that the next leader does not have to wait; then calls `done`, also if
  // that failed. Nothing is acquired any more.
  void Release(std::function<void()> done);

  // Leaves word: with a renewal, at once. It ends with our leadership. REQUIRES: IsLeader().
  void Carry(std::string word);
  bool is_carried() const { return !carry_ || *carry_ == seen_.word; }  // What Carry said last.
  const std::string& carried() const { return seen_.word; }             // As last seen.

  const std::string& holder() const { return seen_.holder; }  // As last seen; empty: none.
  bool has_namesake() const { return has_namesake_; }         // Another with our identity lives.
  const LeaseCounts& counts() const { return counts_; }
  const std::optional<Error>& last_error() const { return last_error_; }

 private:
  struct Record {
    std::string holder;
    std::string renewed;  // As written there.
    std::string version;  // resourceVersion
    Duration duration{};
    int64_t transitions = 0;
    std::string word;
    std::string body;  // The whole object, of which we change only the spec and our word.
  };

  void Turn();
  void Read(ApiClient::OnAnswer on_answer);
  void OnRead(ApiAnswer answer);
  void Renew();
  void OnWritten(ApiAnswer answer, Instant sent_at);
  void GiveAway(ApiAnswer answer, std::function<void()> done);
  ApiClient::Id Write(const std::string& holder, Duration duration, ApiClient::OnAnswer on_answer);
  void Hold(Instant since);
  void Lose(std::string_view why);
  void Wait(Duration delay);
  Duration NextTry();
  Result<Record> Parse(const std::string& body) const;
  Record Gone() const;
  void See(Record record);
  bool IsOurs(const Record& record) const;
  void NoteFailure(Error error);
  std::string Path() const;

  ApiClient* client_;
  LeaseOptions options_;
  std::function<void(Leadership)> on_change_;
  Rng rng_;
  ApiClient::Id request_ = 0;  // Or the wait for the next.
  ApiClient::Id fence_timer_ = 0;
  bool is_holder_ = false;
  bool is_over_ = false;
  Instant fence_;  // We lead until then.
  Record seen_;
  bool is_current_ = false;  // `seen_` is what the server has, as far as we know.
  Instant seen_at_;          // When it last changed.
  std::optional<std::string> carry_;
  bool is_waiting_ = false;        // `request_` is the wait for the next.
  std::set<std::string> written_;  // renewTime of our last writes.
  bool has_namesake_ = false;
  std::optional<Error> last_error_;
  LeaseCounts counts_;
};

}  // namespace rudderfish::kube
