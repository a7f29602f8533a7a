// SPDX-License-Identifier: Apache-2.0
#include "run/control_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class ControlSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("rudderfish-socket-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
    path_ = folder_ / "r.sock";
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_, path_;
};

TEST_F(ControlSocketTest, AnswersARequestALineEach) {
  auto socket = ControlSocket::Listen(path_).value();
  std::atomic<bool> done{false};
  Result<std::string> reply;
  const std::string large(300'000, 'x');
  std::thread client([&] {
    reply = AskController(path_, "status", milliseconds(5000));
    done = true;
  });
  while (!done) {
    socket->Poll(milliseconds(10), -1, [&](std::string_view request) {
      EXPECT_EQ(request, "status");
      return large;
    });
  }
  client.join();
  EXPECT_EQ(reply.value(), large);
}

TEST_F(ControlSocketTest, OnlyItsOwnerMayUseIt) {
  auto socket = ControlSocket::Listen(path_).value();
  struct stat what {};
  ASSERT_EQ(::stat(path_.c_str(), &what), 0);
  EXPECT_EQ(what.st_mode & 0777, 0600u);
}

TEST_F(ControlSocketTest, TakesThePlaceOfOneThatIsDeadButNotOfALiveOne) {
  auto socket = ControlSocket::Listen(path_).value();
  const auto second = ControlSocket::Listen(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  // What kill -9 leaves behind: a file on which no process listens.
  const fs::path kept = folder_ / "kept.sock";
  fs::rename(path_, kept);
  socket.reset();
  EXPECT_TRUE(ControlSocket::Listen(kept));
  EXPECT_FALSE(fs::exists(kept)) << "it is removed at the end";
}

TEST_F(ControlSocketTest, FileThatIsNoSocketIsLeftAlone) {
  std::ofstream(path_) << "data";
  EXPECT_FALSE(ControlSocket::Listen(path_));
  EXPECT_EQ(fs::file_size(path_), 4u);
}

TEST_F(ControlSocketTest, SaysThatNoControllerIsThere) {
  const auto reply = AskController(path_, "status", milliseconds(1000));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(reply.error().message, ::testing::HasSubstr("no controller is running there"));
}

TEST_F(ControlSocketTest, RequestWithoutEndIsDropped) {
  auto socket = ControlSocket::Listen(path_).value();
  std::atomic<bool> done{false};
  Result<std::string> reply;
  std::thread client([&] {
    reply = AskController(path_, std::string(5000, 'x'), milliseconds(5000));
    done = true;
  });
  bool answered = false;
  while (!done) {
    socket->Poll(milliseconds(10), -1, [&](std::string_view) {
      answered = true;
      return std::string("{}");
    });
  }
  client.join();
  EXPECT_FALSE(answered);
  EXPECT_FALSE(reply);
}

}  // namespace
}  // namespace rudderfish
