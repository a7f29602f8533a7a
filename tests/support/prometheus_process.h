// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "net/http_server.h"

// The real Prometheus on loopback, scraping an exporter whose text a test sets, every 200 ms.

namespace rudderfish::testing {

inline bool PrometheusIsInstalled() {
  return std::system("command -v prometheus >/dev/null") == 0;  // NOLINT(concurrency-mt-unsafe)
}

// What is scraped.
class Exporter {
 public:
  Exporter() {
    auto server = HttpServer::Start({.listen = {"127.0.0.1:0"}}, [this](const HttpRequest&) {
      const std::lock_guard lock(mutex_);
      return HttpResponse{.content_type = "text/plain; version=0.0.4", .body = text_};
    });
    CHECK(server.has_value());
    server_ = *std::move(server);
  }
  void Set(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  const std::string& address() const { return server_->addresses()[0]; }

 private:
  std::mutex mutex_;
  std::string text_;
  std::unique_ptr<HttpServer> server_;
};

enum class PrometheusDoor { kOpen, kTlsAndPassword };

class PrometheusProcess {
 public:
  // Who passes the door is "user" with the password "door".
  static constexpr const char* kPassword = "Authorization: Basic dXNlcjpkb29y";

  explicit PrometheusProcess(const Exporter& exporter, PrometheusDoor door = PrometheusDoor::kOpen)
      : door_(door) {
    char folder[] = "/tmp/prometheus-XXXXXX";
    CHECK(::mkdtemp(folder) != nullptr);
    folder_ = folder;
    address_ = "127.0.0.1:" + std::to_string(FreePort());
    std::ofstream(folder_ / "prometheus.yml")
        << "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"
        << "scrape_configs: [{job_name: t, static_configs: [{targets: ['" << exporter.address()
        << "']}]}]\n";
    if (door_ == PrometheusDoor::kTlsAndPassword) MakeDoor();
    Run();
  }
  ~PrometheusProcess() {
    Continue();
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }
  PrometheusProcess(const PrometheusProcess&) = delete;

  std::string url() const {
    return (door_ == PrometheusDoor::kOpen ? "http://" : "https://") + address_;
  }
  std::string ca_file() const { return folder_ / "door.pem"; }  // It signs itself.

  // Connections are still accepted, but nothing is answered.
  void Pause() const {
    ::kill(pid_, SIGSTOP);
    // The signal is only on its way: until its last thread stands, one could still answer.
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }
  void Continue() const { ::kill(pid_, SIGCONT); }

 private:
  static int FreePort() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(::bind(probe, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    CHECK_EQ(::getsockname(probe, reinterpret_cast<sockaddr*>(&at), &size), 0);
    ::close(probe);
    return ntohs(at.sin_port);
  }

  void MakeDoor() const {
    const std::string at = folder_.string();
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=door -addext subjectAltName=IP:127.0.0.1 -keyout " +
        at + "/door.key -out " + at + "/door.pem 2>/dev/null";
    CHECK_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(folder_ / "web.yml")
        << "tls_server_config: {cert_file: door.pem, key_file: door.key}\n"
        << "basic_auth_users: {user: "
           "$2b$04$abcdefghijklmnopqrstuuAfdI2dOMzrwkyc4xTKih7pY4n0Cu5gy}\n";
  }

  void Run() {
    const std::string command =
        "exec prometheus --config.file=" + folder_.string() +
        "/prometheus.yml --storage.tsdb.path=" + folder_.string() +
        "/data --web.listen-address=" + address_ +
        (door_ == PrometheusDoor::kOpen ? ""
                                        : " --web.config.file=" + folder_.string() + "/web.yml") +
        " >" + folder_.string() + "/log 2>&1";
    const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
    CHECK_EQ(::posix_spawnp(&pid_, "sh", nullptr, nullptr, const_cast<char**>(arguments), environ),
             0);
  }

  PrometheusDoor door_;
  std::filesystem::path folder_;
  std::string address_;
  pid_t pid_ = -1;
};

}  // namespace rudderfish::testing
