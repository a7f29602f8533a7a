// SPDX-License-Identifier: Apache-2.0
#include "cloud/xds_server.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/files.h"
#include "cloud/xds_session.h"

namespace rudderfish {
namespace {

constexpr std::string_view kStreamResources =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
constexpr std::string_view kStreamLoads =
    "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";
constexpr int kMessageMax = 1 << 20;  // Bytes.
constexpr int kKeepaliveMs = 30'000;
constexpr size_t kStreamsMax = 10'000;

// What matters is told by our own log; GRPC_VERBOSITY asks for the library's.
void KeepQuiet() {
  static const bool is_quiet = [] {
    if (std::getenv("GRPC_VERBOSITY") == nullptr)  // NOLINT(concurrency-mt-unsafe)
      gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  static_cast<void>(is_quiet);
}

grpc::ByteBuffer BufferOf(const std::string& message) {
  const grpc::Slice slice(message);
  return {&slice, 1};
}

Result<std::string> TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return Invalid("a message that cannot be read");
  std::string text;
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

class StreamList;

// A stream of messages in both directions; one write at a time, as gRPC wants it.
class XdsStream : public grpc::ServerGenericBidiReactor {
 public:
  explicit XdsStream(StreamList* list) : list_(list) {}

  void Begin();
  void Push() {
    const std::lock_guard lock(mutex_);
    WriteNext();
  }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 protected:
  virtual Result<void> Take(std::string_view message) = 0;
  virtual std::optional<std::string> Next() = 0;

 private:
  void WriteNext();
  void End(const grpc::Status& status);

  StreamList* list_;
  std::mutex mutex_;
  grpc::ByteBuffer in_, out_;
  bool is_writing_ = false, has_ended_ = false;
};

// The streams that are open, so that all can be told of new weights.
class StreamList {
 public:
  bool Add(XdsStream* stream) {
    const std::lock_guard lock(mutex_);
    if (streams_.size() >= kStreamsMax) return false;
    streams_.insert(stream);
    return true;
  }
  void Remove(XdsStream* stream) {
    const std::lock_guard lock(mutex_);
    streams_.erase(stream);
  }
  XdsBoard::StreamId NewId() { return ++ids_; }
  void PushAll() {
    const std::lock_guard lock(mutex_);
    for (XdsStream* stream : streams_) stream->Push();
  }

 private:
  std::mutex mutex_;
  std::set<XdsStream*> streams_;
  std::atomic<XdsBoard::StreamId> ids_{0};
};

void XdsStream::Begin() {
  if (!list_->Add(this)) {
    Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many clients"});
    return;
  }
  StartRead(&in_);
}

void XdsStream::OnReadDone(bool ok) {
  const std::lock_guard lock(mutex_);
  if (!ok) {
    End(grpc::Status::OK);
    return;
  }
  Result<std::string> text = TextOf(in_);
  Result<void> taken = text ? Take(*text) : tl::unexpected(text.error());
  if (!taken) {
    End({grpc::StatusCode::INVALID_ARGUMENT, taken.error().message});
    return;
  }
  WriteNext();
  if (!has_ended_) StartRead(&in_);
}

void XdsStream::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  is_writing_ = false;
  if (ok) {
    WriteNext();
  } else {
    End(grpc::Status::OK);
  }
}

void XdsStream::OnDone() {
  list_->Remove(this);
  delete this;
}

void XdsStream::WriteNext() {
  if (is_writing_ || has_ended_) return;
  const std::optional<std::string> message = Next();
  if (!message) return;
  out_ = BufferOf(*message);
  is_writing_ = true;
  StartWrite(&out_);
}

void XdsStream::End(const grpc::Status& status) {
  if (std::exchange(has_ended_, true)) return;
  Finish(status);
}

class ResourceStream final : public XdsStream {
 public:
  ResourceStream(StreamList* list, XdsBoard* board, XdsBoard::StreamId id)
      : XdsStream(list), session_(board, id) {}

 protected:
  Result<void> Take(std::string_view message) override { return session_.Take(message); }
  std::optional<std::string> Next() override { return session_.Next(); }

 private:
  XdsSession session_;
};

class LoadStream final : public XdsStream {
 public:
  LoadStream(StreamList* list, XdsBoard* board) : XdsStream(list), board_(board) {}

 protected:
  Result<void> Take(std::string_view message) override {
    is_greeted_ = true;
    return TakeLoadReport(message, board_);
  }
  std::optional<std::string> Next() override {
    if (!is_greeted_ || std::exchange(is_answered_, true)) return std::nullopt;
    return LoadReportsWanted(*board_);
  }

 private:
  XdsBoard* board_;
  bool is_greeted_ = false, is_answered_ = false;
};

class UnknownCall final : public grpc::ServerGenericBidiReactor {
 public:
  UnknownCall() { Finish({grpc::StatusCode::UNIMPLEMENTED, "only ADS and LRS are served"}); }
  void OnDone() override { delete this; }
};

class XdsGrpc final : public grpc::CallbackGenericService {
 public:
  XdsGrpc(XdsBoard* board, StreamList* streams) : board_(board), streams_(streams) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    XdsStream* stream = nullptr;
    if (context->method() == kStreamResources) {
      stream = new ResourceStream(streams_, board_, streams_->NewId());
    } else if (context->method() == kStreamLoads) {
      stream = new LoadStream(streams_, board_);
    } else {
      return new UnknownCall();
    }
    stream->Begin();
    return stream;
  }

 private:
  XdsBoard* board_;
  StreamList* streams_;
};

Result<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(const XdsListen& listen) {
  if (listen.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      listen.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                               : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  TRY_ASSIGN(std::string certificate, ReadFile(listen.certificate));
  TRY_ASSIGN(std::string key, ReadFile(listen.key));
  options.pem_key_cert_pairs.push_back({std::move(key), std::move(certificate)});
  if (!listen.client_ca.empty()) {
    TRY_ASSIGN(options.pem_root_certs, ReadFile(listen.client_ca));
  }
  return grpc::SslServerCredentials(options);
}

class GrpcXdsServer final : public XdsServer {
 public:
  GrpcXdsServer(std::vector<XdsService> services, std::filesystem::path kept)
      : board_(std::move(services)), kept_(std::move(kept)) {}
  ~GrpcXdsServer() override { HangUp(); }

  Result<void> Listen(const XdsListen& listen) override {
    HangUp();
    KeepQuiet();
    TRY(Recall());
    TRY_ASSIGN(const std::shared_ptr<grpc::ServerCredentials> credentials, CredentialsOf(listen));
    grpc::ServerBuilder builder;
    builder.AddListeningPort(listen.address, credentials, &port_);
    service_ = std::make_unique<XdsGrpc>(&board_, &streams_);  // Of one server only.
    builder.RegisterCallbackGenericService(service_.get());
    builder.SetMaxReceiveMessageSize(kMessageMax);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port_ != 0) return {};
    server_.reset();
    port_ = 0;
    return Fail(ErrorCode::kUnavailable,
                "xDS cannot be served on {}: the address is in use or not of this machine, or the "
                "certificate and its key are none",
                listen.address);
  }

  void HangUp() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::time_point());  // Calls end at once.
    server_->Wait();
    server_.reset();
    port_ = 0;
  }

  int port() const override { return port_; }

  Result<void> Set(const std::string& service, const std::vector<int64_t>& weights) override {
    // What cannot be kept is not told: the next process would tell something else.
    const std::lock_guard lock(setting_);
    const std::optional<XdsService> before = board_.Find(service);
    if (!before) return Invalid("xds: no service is called {}", service);
    board_.Set(service, weights);
    if (Result<void> written = Keep(); !written) {
      std::vector<int64_t> old;
      for (const XdsRegion& region : before->regions) old.push_back(region.weight);
      board_.Set(service, old);
      return written;
    }
    streams_.PushAll();
    return {};
  }

  const XdsBoard& board() const override { return board_; }

  Result<void> Recall() {
    std::error_code ignored;
    if (kept_.empty() || !std::filesystem::exists(kept_, ignored)) return {};
    TRY_ASSIGN(const std::string text, ReadFile(kept_));
    return board_.Recall(text, kept_.string());
  }

 private:
  Result<void> Keep() const {
    return kept_.empty() ? Result<void>() : WriteFileAtomically(kept_, board_.Text());
  }

  XdsBoard board_;
  std::filesystem::path kept_;
  std::mutex setting_;  // One at a time: they write one file.
  StreamList streams_;
  std::unique_ptr<XdsGrpc> service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;  // Last: its calls use the others.
};

}  // namespace

Result<std::unique_ptr<XdsServer>> XdsServer::Open(std::vector<XdsService> services,
                                                   std::filesystem::path kept) {
  auto server = std::make_unique<GrpcXdsServer>(std::move(services), std::move(kept));
  TRY(server->Recall());
  return server;
}

}  // namespace rudderfish
