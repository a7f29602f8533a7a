// SPDX-License-Identifier: Apache-2.0
#include "kube/claim_users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rudderfish::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ClaimUsers, AChangedClaimOrVolumeIsNewsForThePodsThatUseIt) {
  const ObjectKey one{"n", "one"}, two{"n", "two"}, elsewhere{"m", "one"};
  ClaimUsers users;
  users.PutPod(one, {"c", "d"});
  users.PutPod(two, {"d"});
  users.PutPod(elsewhere, {"c"});
  EXPECT_THAT(users.TakeConcerned(), IsEmpty());
  users.PutClaim({"n", "c"}, "v");
  EXPECT_THAT(users.TakeConcerned(), ElementsAre(one));
  users.NoteVolume("v");
  EXPECT_THAT(users.TakeConcerned(), ElementsAre(one));
  users.PutClaim({"n", "c"}, "w");
  users.TakeConcerned();
  users.NoteVolume("v");
  EXPECT_THAT(users.TakeConcerned(), IsEmpty());
  users.PutClaim({"n", "d"}, "w");
  users.TakeConcerned();
  users.NoteVolume("w");
  EXPECT_THAT(users.TakeConcerned(), ElementsAre(one, two));
  users.RemoveClaim({"n", "c"});
  EXPECT_THAT(users.TakeConcerned(), ElementsAre(one));
  users.NoteVolume("w");
  EXPECT_THAT(users.TakeConcerned(), ElementsAre(one, two));
}

TEST(ClaimUsers, OfAPodThatIsGoneNothingIsTold) {
  const ObjectKey pod{"n", "p"}, other{"n", "q"};
  ClaimUsers users;
  users.PutClaim({"n", "c"}, "v");
  users.PutPod(pod, {"c"});
  users.PutPod(other, {});
  users.NoteAll();
  EXPECT_THAT(users.TakeConcerned(), ElementsAre(pod, other));
  users.NoteVolume("v");
  users.RemovePod(pod);
  EXPECT_THAT(users.TakeConcerned(), IsEmpty());
  users.NoteVolume("v");
  users.NoteAll();
  EXPECT_THAT(users.TakeConcerned(), ElementsAre(other));
  users.PutPod(other, {"c"});  // Another one of that name.
  users.NoteVolume("v");
  EXPECT_THAT(users.TakeConcerned(), ElementsAre(other));
}

}  // namespace
}  // namespace rudderfish::kube
