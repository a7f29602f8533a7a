// SPDX-License-Identifier: Apache-2.0
#include "run/run_places.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/test_folder.h"

namespace rudderfish {
namespace {

class Places : public ::testing::Test {
 protected:
  RunPlaces Of(const std::string& text) {
    const std::filesystem::path file = folder_ / "rudderfish.yaml";
    std::ofstream(file) << text;
    const Result<RunPlaces> places = FindRunPlaces(file);
    EXPECT_TRUE(places.has_value());
    return places.value_or(RunPlaces());
  }

  const testing::TestFolder folder_;
};

// Commands that stop a controller find it whatever is wrong with the file.
TEST_F(Places, AreReadFromAFileThatIsNoYaml) {
  const std::string broken = "decisions:\n  migration: {mode: off}\n  migration: {mode: off}\n";
  for (const char* server :
       {"server:\n  # socket: /no\n  listen: :8080\n  socket: \"/run/x/r.sock\"  # here\n",
        "server: {listen: \":8080\", socket: /run/x/r.sock}\n",
        "server :\n\tsocket: /no\nserver:\n\tsocket : '/run/x/r.sock'\r\n"}) {
    const RunPlaces places = Of(broken + server + "journal:\n  keep: 7d\n  path: kept/j.db\n");
    EXPECT_NE(places.problem, "");
    EXPECT_EQ(places.socket, "/run/x/r.sock") << server;
    EXPECT_EQ(places.journal, folder_ / "kept/j.db");
  }
}

TEST_F(Places, OfOtherSectionsAreNotTaken) {
  const RunPlaces places =
      Of("a: [\nother:\n  socket: /no\n  path: /no\nserver:\n  my_socket: /no\n  sockets: /no\n");
  EXPECT_NE(places.problem, "");
  EXPECT_EQ(places.journal.parent_path(), folder_.path());
  EXPECT_EQ(places.socket.parent_path(), folder_.path());
}

TEST_F(Places, EndWhereTheTextEnds) {
  for (const char* text : {"server:", "server: {socket", "server: {socket:", "server: {socket: \"",
                           "server:\n  socket:", "\tsocket: a\nserver", "server:socket:a"}) {
    EXPECT_NE(Of(std::string("{") + "\n" + text).problem, "") << text;
  }
}

}  // namespace
}  // namespace rudderfish
