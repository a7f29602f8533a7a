// SPDX-License-Identifier: Apache-2.0
#include "net/server_tls.h"

#include <curl/curl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "net/http_server.h"
#include "tests/support/raw_http.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

size_t Append(const char* bytes, size_t size, size_t count, void* text) {
  static_cast<std::string*>(text)->append(bytes, size * count);
  return size * count;
}

// Two authorities, `ours` and `theirs`, and what each has signed.
class ServerTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::path(::testing::TempDir()) / "tls-XXXXXX").string();
    CHECK(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
    for (const std::string authority : {"ours", "theirs"}) {
      OpenSsl(
          "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=" +
          authority + " -keyout " + authority + ".key -out " + authority + ".pem");
      Sign("client", authority);
    }
    Sign("server", "ours");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void OpenSsl(const std::string& arguments) const {
    const std::string command = "cd " + folder_.string() + " && openssl " + arguments + " 2>log";
    CHECK_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  }

  // Makes WHO-AUTHORITY.pem and .key.
  void Sign(const std::string& who, const std::string& authority) const {
    const std::string name = who + "-" + authority;
    std::ofstream(folder_ / "names") << "subjectAltName=IP:127.0.0.1\n";
    OpenSsl("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=" + who +
            " -keyout " + name + ".key -out " + name + ".csr");
    OpenSsl("x509 -req -days 2 -extfile names -CAcreateserial -in " + name + ".csr -CA " +
            authority + ".pem -CAkey " + authority + ".key -out " + name + ".pem");
  }

  std::string At(const std::string& name) const { return (folder_ / name).string(); }

  ServerTlsFiles Files() const {
    return {.certificate = At("server-ours.pem"),
            .key = At("server-ours.key"),
            .client_ca = At("ours.pem")};
  }

  std::unique_ptr<HttpServer> Started(int connections_max = 256) {
    HttpServerOptions options{.listen = {"127.0.0.1:0"},
                              .threads = 1,
                              .connections_max = connections_max,
                              .tls = Files()};
    options.refused = [this](std::string_view) { ++refused_; };
    HttpRoutes routes;
    routes.Add("GET", "/hello", [](const HttpRequest& request) {
      return HttpResponse{.body = "hello " + std::string(request.query)};
    });
    auto server = HttpServer::Start(options, std::move(routes));
    CHECK(server.has_value());
    return *std::move(server);
  }

  // What a client with this certificate (none, if empty) is answered, or why not.
  std::string Ask(const HttpServer& server, const std::string& certificate, int times = 1) const {
    CURL* curl = curl_easy_init();
    std::string body;
    curl_easy_setopt(curl, CURLOPT_URL,
                     ("https://" + server.addresses()[0] + "/hello?you").c_str());
    curl_easy_setopt(curl, CURLOPT_CAINFO, At("ours.pem").c_str());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Append);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
    if (!certificate.empty()) {
      curl_easy_setopt(curl, CURLOPT_SSLCERT, At(certificate + ".pem").c_str());
      curl_easy_setopt(curl, CURLOPT_SSLKEY, At(certificate + ".key").c_str());
    }
    CURLcode code = CURLE_OK;
    for (int i = 0; i < times && code == CURLE_OK; ++i) code = curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    return code == CURLE_OK ? body : curl_easy_strerror(code);
  }

  fs::path folder_;
  std::atomic<int> refused_{0};
};

TEST_F(ServerTlsTest, ClientsWhoseCertificateIsSignedAreServedOnOneConnection) {
  const auto server = Started();
  EXPECT_EQ(Ask(*server, "client-ours", 3), "hello youhello youhello you");
  EXPECT_EQ(refused_, 0);
}

TEST_F(ServerTlsTest, SilentConnectionsAreClosedForOthersWithoutAHandshake) {
  const auto server = Started(4);
  std::vector<std::unique_ptr<testing::RawConnection>> silent;
  for (int i = 0; i < 40; ++i)
    silent.push_back(std::make_unique<testing::RawConnection>(server->addresses()[0]));
  EXPECT_EQ(Ask(*server, "client-ours"), "hello you");
  for (int i = 0; i < 36; ++i) EXPECT_TRUE(silent[i]->AtEnd()) << i;
  EXPECT_EQ(refused_, 0);
}

TEST_F(ServerTlsTest, ClientsWithNoCertificateOrOneOfOthersAreRefusedAndCounted) {
  const auto server = Started();
  EXPECT_THAT(Ask(*server, ""), ::testing::Not(HasSubstr("hello")));
  EXPECT_THAT(Ask(*server, "client-theirs"), ::testing::Not(HasSubstr("hello")));
  EXPECT_THAT(testing::Fetch(server->addresses()[0], "/hello?plain"),
              ::testing::Not(HasSubstr("hello")));
  testing::RawConnection(server->addresses()[0]);  // A probe that only connects is not counted.
  EXPECT_EQ(Ask(*server, "client-ours"), "hello you");  // The others have been dealt with by now.
  EXPECT_EQ(refused_, 3);
}

// A client that goes on with a session that it has, if it has one.
class Resumed : public ServerTlsTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    ServerTlsTest::SetUp();
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context_, GetParam());
    SSL_CTX_set_max_proto_version(context_, GetParam());
    CHECK_EQ(SSL_CTX_use_certificate_file(context_, At("client-ours.pem").c_str(), 1), 1);
    CHECK_EQ(SSL_CTX_use_PrivateKey_file(context_, At("client-ours.key").c_str(), 1), 1);
  }
  void TearDown() override {
    SSL_SESSION_free(session_);
    SSL_CTX_free(context_);
    ServerTlsTest::TearDown();
  }

  std::string Ask(const HttpServer& server) {
    BIO* bio = BIO_new_ssl_connect(context_);
    SSL* tls = nullptr;
    BIO_get_ssl(bio, &tls);
    BIO_set_conn_hostname(bio, server.addresses()[0].c_str());
    if (session_ != nullptr) SSL_set_session(tls, session_);
    std::string answer;
    BIO_puts(bio, "GET /hello?you HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    char bytes[4096];
    for (int count = 0; !answer.ends_with("hello you"); answer.append(bytes, count)) {
      count = BIO_read(bio, bytes, sizeof bytes);
      if (count <= 0) break;
    }
    is_resumed_ = SSL_session_reused(tls) == 1;
    SSL_SESSION_free(session_);
    session_ = SSL_get1_session(tls);  // By now TLS 1.3 has sent its tickets.
    SSL_set_shutdown(tls, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);  // Else it is not resumed.
    BIO_free_all(bio);
    return answer;
  }

  SSL_CTX* context_ = nullptr;
  SSL_SESSION* session_ = nullptr;
  bool is_resumed_ = false;
};

TEST_P(Resumed, SessionOfAKnownClientGoesOn) {
  const auto server = Started();
  EXPECT_THAT(Ask(*server), HasSubstr("hello you"));
  EXPECT_FALSE(is_resumed_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Ask(*server), HasSubstr("hello you"));
    EXPECT_TRUE(is_resumed_);
  }
  EXPECT_EQ(refused_, 0);
}

TEST_P(Resumed, SessionOfAnAuthorityThatIsNotTakenAnyMoreDoesNot) {
  const auto server = Started();
  EXPECT_THAT(Ask(*server), HasSubstr("hello you"));
  fs::copy_file(At("theirs.pem"), At("ours.pem"), fs::copy_options::overwrite_existing);
  fs::last_write_time(At("ours.pem"), fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(Ask(*server), "");
  EXPECT_FALSE(is_resumed_);
  server->Stop(std::chrono::seconds(10));  // It may hear of it after the client.
  EXPECT_EQ(refused_, 1);
}

INSTANTIATE_TEST_SUITE_P(Versions, Resumed, ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION));

TEST_F(ServerTlsTest, ACertificateThatIsRenewedIsUsedAndOneThatIsBrokenIsNot) {
  const auto server = Started();
  const auto later = [](int seconds) {
    return fs::file_time_type::clock::now() + std::chrono::seconds(seconds);
  };
  std::ofstream(At("server-ours.pem")) << "half a certifi";
  fs::last_write_time(At("server-ours.pem"), later(1));
  EXPECT_EQ(Ask(*server, "client-ours"), "hello you");
  Sign("server", "theirs");
  fs::rename(At("server-theirs.pem"), At("server-ours.pem"));
  fs::rename(At("server-theirs.key"), At("server-ours.key"));
  fs::last_write_time(At("server-ours.pem"), later(2));
  EXPECT_THAT(Ask(*server, "client-ours"),
              HasSubstr("certificate"));  // Its authority is theirs now.
}

TEST_F(ServerTlsTest, FilesThatCannotBeUsedAreNamed) {
  ServerTlsFiles files = Files();
  files.certificate = At("nothing.pem");
  EXPECT_THAT(ServerTls::Load(files).error().message, HasSubstr("nothing.pem"));
  files = Files();
  files.key = At("client-ours.key");
  EXPECT_THAT(ServerTls::Load(files).error().message, HasSubstr("expected the key of"));
  files = Files();
  files.client_ca = At("server-ours.key");
  EXPECT_THAT(ServerTls::Load(files).error().message, HasSubstr("who signs clients"));
}

}  // namespace
}  // namespace rudderfish
