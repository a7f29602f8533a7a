// SPDX-License-Identifier: Apache-2.0
#include "cloud/xds_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/files.h"
#include "cloud/xds_enactor.h"
#include "tests/support/test_folder.h"

// The server against gRPC's own client of xDS, which chooses between servers that answer.

namespace rudderfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

// Answers each call with its name.
class NamedServer {
 public:
  explicit NamedServer(std::string name) : service_(std::move(name)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~NamedServer() { Stop(); }

  void Stop() { server_->Shutdown(std::chrono::system_clock::time_point()); }
  SocketAddress Address() const {
    return SocketAddress::Of("127.0.0.1", static_cast<uint16_t>(port_)).value();
  }

 private:
  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Call(const std::string& name) : slice_(name), out_(&slice_, 1) { StartRead(&in_); }
    void OnReadDone(bool ok) override {
      if (ok) {
        StartWriteAndFinish(&out_, {}, grpc::Status::OK);
      } else {
        Finish(grpc::Status::CANCELLED);
      }
    }
    void OnDone() override { delete this; }

   private:
    grpc::Slice slice_;
    grpc::ByteBuffer in_, out_;
  };
  class Service final : public grpc::CallbackGenericService {
   public:
    explicit Service(std::string name) : name_(std::move(name)) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
      return new Call(name_);
    }

   private:
    std::string name_;
  };

  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class Client {
 public:
  Client(int xds_port, const std::string& target)
      : channel_((Bootstrap(xds_port),
                  grpc::CreateCustomChannel("xds:///" + target, grpc::InsecureChannelCredentials(),
                                            Arguments()))),
        stub_(channel_) {}

  // Who has answered; empty: the call has failed.
  std::string Ask(milliseconds patience = milliseconds(5000)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    const grpc::Slice slice("?");
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer answer;
    grpc::Status status;
    auto call = stub_.PrepareUnaryCall(&context, "/test/Who", request, &queue_);
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    std::vector<grpc::Slice> slices;
    if (!status.ok() || !answer.Dump(&slices).ok() || slices.empty()) return "";
    return {reinterpret_cast<const char*>(slices[0].begin()), slices[0].size()};
  }

  std::map<std::string, int> AskTimes(int times) {
    std::map<std::string, int> by;
    for (int i = 0; i < times; ++i) ++by[Ask()];
    return by;
  }

 private:
  static void Bootstrap(int port) {
    const std::string text = fmt::format(
        R"({{"xds_servers": [{{"server_uri": "127.0.0.1:{}", "channel_creds": [{{"type":)"
        R"( "insecure"}}], "server_features": ["xds_v3"]}}], "node": {{"id": "test"}}}})",
        port);
    ::setenv("GRPC_XDS_BOOTSTRAP_CONFIG", text.c_str(), 1);
    ::setenv("no_proxy", "127.0.0.1", 1);
  }
  static grpc::ChannelArguments Arguments() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
  }

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

class XdsServerTest : public ::testing::Test {
 protected:
  XdsServerTest() : server_(Open()) { EXPECT_TRUE(server_->Listen({.address = "127.0.0.1:0"})); }

  XdsChoice Choice() const {
    return {.service = "web", .regions = {{"eu", {eu_.Address()}}, {"us", {us_.Address()}}}};
  }
  std::unique_ptr<XdsServer> Open() {
    return XdsServer::Open({ServiceOf(Choice())}, folder_ / "kept.json").value();
  }

  testing::TestFolder folder_;
  NamedServer eu_{"eu"}, us_{"us"};
  std::unique_ptr<XdsServer> server_;
};

TEST_F(XdsServerTest, AClientFollowsTheWeightsWithinATenthOfASecond) {
  XdsEnactor enactor(server_.get(), Choice());
  ASSERT_TRUE(enactor.Read());
  Client client(server_->port(), "web");
  ASSERT_NE(client.Ask(), "");
  constexpr int kCalls = 10'000;
  for (const int64_t eu : {8000, 3000}) {
    ASSERT_TRUE(enactor.Send({eu, 10'000 - eu}));
    const double share = static_cast<double>(client.AskTimes(kCalls)["eu"]) / kCalls;
    EXPECT_NEAR(share, static_cast<double>(eu) / 10'000, 0.02);  // Four deviations.
  }
  // A region that gets nothing gets nothing.
  ASSERT_TRUE(enactor.Send({10'000, 0}));
  const auto sent = steady_clock::now();
  auto last_other = sent;
  for (int i = 0; i < 1000; ++i) {
    if (client.Ask() != "eu") last_other = steady_clock::now();
  }
  EXPECT_LT(last_other - sent, milliseconds(100));
  const StandingWeights standing = enactor.Read().value();
  EXPECT_EQ(standing.backends[0].weight, 10'000);
  EXPECT_TRUE(standing.backends[0].is_healthy);
  EXPECT_EQ(standing.backends[0].health, "1 of 1 endpoint accept connections");
  EXPECT_THAT(standing.notes[0], HasSubstr("1 client connected, 1 follows"));
}

TEST_F(XdsServerTest, ClientsReportWhatTheyHaveSent) {
  Client client(server_->port(), "web");
  const auto by = client.AskTimes(500);
  const auto all = [&] {
    return server_->board().LoadOf("web", "eu").succeeded +
           server_->board().LoadOf("web", "us").succeeded;
  };
  const auto end = steady_clock::now() + std::chrono::seconds(30);
  while (all() < 500 && steady_clock::now() < end) std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(server_->board().LoadOf("web", "eu").succeeded, static_cast<uint64_t>(by.at("eu")));
  EXPECT_EQ(server_->board().LoadOf("web", "us").issued, static_cast<uint64_t>(by.at("us")));
  EXPECT_EQ(server_->board().LoadOf("web", "us").failed, 0U);
}

TEST_F(XdsServerTest, WhileItIsGoneClientsGoOnAndTheNextProcessTellsTheSame) {
  XdsEnactor enactor(server_.get(), Choice());
  Client client(server_->port(), "web");
  ASSERT_NE(client.Ask(), "");
  ASSERT_TRUE(enactor.Send({0, 10'000}));
  const int port = server_->port();
  server_.reset();
  EXPECT_EQ(client.AskTimes(200)["us"], 200) << "the last good split is kept";
  server_ = Open();
  EXPECT_EQ(server_->board().Find("web")->regions[1].weight, 10'000);
  ASSERT_TRUE(server_->Listen({.address = fmt::format("127.0.0.1:{}", port)}));
  EXPECT_EQ(client.AskTimes(200)["us"], 200);
  Client other(port, "web");
  EXPECT_EQ(other.AskTimes(50)["us"], 50);
}

TEST_F(XdsServerTest, WhoListensAgainTellsWhatAnotherHasToldMeanwhile) {
  server_->HangUp();
  auto other = Open();
  ASSERT_TRUE(other->Set("web", {0, 10'000}));
  ASSERT_TRUE(server_->Listen({.address = "127.0.0.1:0"}));
  EXPECT_EQ(server_->board().Find("web")->regions[1].weight, 10'000);
}

TEST_F(XdsServerTest, ARegionThatHasDiedIsSeenAndARefusedAddressIsNamed) {
  us_.Stop();
  XdsEnactor enactor(server_.get(), Choice());
  EXPECT_TRUE(enactor.Read()->backends[1].is_healthy) << "one connection may be lost";
  StandingWeights standing = enactor.Read().value();
  EXPECT_TRUE(standing.backends[0].is_healthy);
  EXPECT_FALSE(standing.backends[1].is_healthy);
  EXPECT_EQ(standing.backends[1].health, "0 of 1 endpoint accept connections");
  auto other = XdsServer::Open({ServiceOf(Choice())}, "").value();
  const auto taken = other->Listen({.address = fmt::format("127.0.0.1:{}", server_->port())});
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("the address is in use"));
  EXPECT_EQ(other->port(), 0);
}

// How a stream of ADS ends, for a client with these credentials.
grpc::StatusCode EndOfStream(int port, const std::shared_ptr<grpc::ChannelCredentials>& with) {
  const auto channel = grpc::CreateChannel(fmt::format("127.0.0.1:{}", port), with);
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(5000));
  auto call = stub.PrepareCall(
      &context, "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
      &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  if (ok) {
    const grpc::Slice rubbish("\xff\xff");
    call->WriteLast(grpc::ByteBuffer(&rubbish, 1), {}, nullptr);
    queue.Next(&tag, &ok);
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  return status.error_code();
}

TEST_F(XdsServerTest, WithTlsOnlyThoseWhomItsAuthorityKnowsAreServed) {
  const auto openssl = [&](const std::string& arguments) {
    const std::string command =
        fmt::format("cd {} && openssl {} 2>log", folder_.path().string(), arguments);
    ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  };
  for (const char* name : {"server", "client", "other"}) {
    openssl(
        fmt::format("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
                    "-subj /CN={0} -addext subjectAltName=IP:127.0.0.1 -keyout {0}.key -out "
                    "{0}.pem",
                    name));
  }
  const auto client = [&](const std::string& name) {
    const auto text = [&](const std::string& file) { return ReadFile(folder_ / file).value(); };
    return grpc::SslCredentials({.pem_root_certs = text("server.pem"),
                                 .pem_private_key = name.empty() ? "" : text(name + ".key"),
                                 .pem_cert_chain = name.empty() ? "" : text(name + ".pem")});
  };
  ASSERT_TRUE(server_->Listen({.address = "127.0.0.1:0",
                               .certificate = folder_ / "server.pem",
                               .key = folder_ / "server.key",
                               .client_ca = folder_ / "client.pem"}));
  const int port = server_->port();
  EXPECT_EQ(EndOfStream(port, client("client")), grpc::StatusCode::INVALID_ARGUMENT)
      << "it is heard, and what it says is rubbish";
  EXPECT_EQ(EndOfStream(port, client("other")), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(EndOfStream(port, client("")), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(EndOfStream(port, grpc::InsecureChannelCredentials()), grpc::StatusCode::UNAVAILABLE);
  const auto none = server_->Listen(
      {.address = "127.0.0.1:0", .certificate = folder_ / "log", .key = folder_ / "server.key"});
  EXPECT_FALSE(none);
  EXPECT_EQ(server_->port(), 0);
}

TEST_F(XdsServerTest, WhatCannotBeKeptIsNotTold) {
  auto nowhere = XdsServer::Open({ServiceOf(Choice())}, folder_ / "no" / "kept.json").value();
  XdsEnactor enactor(nowhere.get(), Choice());
  EXPECT_FALSE(enactor.Send({9000, 1000}));
  EXPECT_EQ(enactor.Read().value().backends[0].weight, 5000);
  EXPECT_FALSE(nowhere->Set("other", {1}));
}

TEST_F(XdsServerTest, AFileThatIsNoneOfOursIsRefused) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "kept.json", R"({"services": [{"service": 3}]})"));
  const auto opened = XdsServer::Open({ServiceOf(Choice())}, folder_ / "kept.json");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message,
              HasSubstr("kept.json: services[0].service: expected a string"));
}

TEST(XdsEndpoint, IsAnAddressWithAPort) {
  EXPECT_EQ(ParseXdsEndpoint("[::1]:80").value().Text(), "[::1]:80");
  for (const char* wrong : {"host:80", "10.0.0.1", "10.0.0.1:0", ""}) {
    EXPECT_FALSE(ParseXdsEndpoint(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace rudderfish
