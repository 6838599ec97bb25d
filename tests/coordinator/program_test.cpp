// vckpt-coordinator as a process: its one line, its exit codes, takeover and draining.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "coordinator/catalog/epochs.h"
#include "runtime/actor.h"
#include "runtime/blocking_storage.h"
#include "runtime/descriptor.h"
#include "runtime/zmq_channel.h"
#include "schema/codec.h"
#include "tests/support/actor_world.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace vckpt {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 20s;

// A coordinator process; killed and reaped at the end.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    REQUIRE(::pipe2(out.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(err.data(), O_CLOEXEC) == 0);
    out_ = Descriptor(out[0]);
    err_ = Descriptor(err[0]);
    const Descriptor out_writer(out[1]);
    const Descriptor err_writer(err[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    arguments.insert(arguments.begin(), VCKPT_COORDINATOR_PROGRAM);
    std::vector<char*> words;
    for (auto& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    REQUIRE(::posix_spawn(&pid_, words[0], &actions, nullptr, words.data(), environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
    pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    REQUIRE(pidfd_.number() >= 0);
  }
  ~Process() {
    if (pid_ <= 0 || reaped_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The first line of stdout; empty when it ends or nothing comes.
  std::string line() {
    std::string text;
    char character = 0;
    while (ready(out_) && ::read(out_.number(), &character, 1) == 1 && character != '\n') text += character;
    return text;
  }
  void terminate() const { ::kill(pid_, SIGTERM); }
  void kill() const { ::kill(pid_, SIGKILL); }
  void pause() const { ::kill(pid_, SIGSTOP); }

  // The exit code; -1 for a signal, -2 when it does not end.
  int wait() {
    if (!ready(pidfd_)) return -2;
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // After wait: all of stderr but the log lines.
  std::string complaint() {
    std::string text;
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto count = ::read(err_.number(), buffer.data(), buffer.size());
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    std::string complaint;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      if (text[begin] != '[') complaint += text.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    return complaint;
  }

 private:
  static bool ready(const Descriptor& descriptor) {
    pollfd waiting{descriptor.number(), POLLIN, 0};
    const auto patience_ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
    return ::poll(&waiting, 1, static_cast<int>(patience_ms)) == 1;
  }

  Descriptor out_;
  Descriptor err_;
  Descriptor pidfd_;
  pid_t pid_ = -1;
  bool reaped_ = false;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// It refuses, in one line that names `what`.
void check_refused(const std::vector<std::string>& arguments, int code, const std::string& what) {
  Process process(arguments);
  CHECK(process.wait() == code);
  const auto complaint = process.complaint();
  INFO(complaint);
  CHECK(contains(complaint, what));
  CHECK(std::count(complaint.begin(), complaint.end(), '\n') == 1);
}

TEST_CASE("the coordinator prints its address, leaves a root that the next one takes over, and ends on SIGTERM",
          "[coordinator][program]") {
  const TemporaryFolder folder;
  const auto root = folder.file("new/root");
  for (int epoch = 1; epoch <= 2; ++epoch) {
    Process process({"--root", root, "--run", "test"});
    CHECK(process.line().starts_with("tcp://127.0.0.1:"));
    process.terminate();
    CHECK(process.wait() == 0);
    CHECK(std::filesystem::exists(root + "/epochs/00000" + std::to_string(epoch)));
  }
  check_refused({"--root", root, "--run", "other"}, 2, "belongs to run 'test', not to 'other'");
}

TEST_CASE("a coordinator that was killed, that is stopped, or has no workers is taken over", "[coordinator][program]") {
  const TemporaryFolder folder;
  Process idle({"--root", folder.file("root")});
  CHECK_FALSE(idle.line().empty());
  Process second({"--root", folder.file("root")});
  CHECK_FALSE(second.line().empty());
  second.kill();
  CHECK(second.wait() == -1);
  Process third({"--root", folder.file("root")});
  CHECK_FALSE(third.line().empty());
  third.pause();  // its port still takes connections
  Process fourth({"--root", folder.file("root")});
  CHECK_FALSE(fourth.line().empty());
}

// The only worker of a session: joins, and says goodbye when it is told to.
class LoneWorker {
 public:
  LoneWorker(const std::string& root, const std::string& endpoint) : actor_("worker") {
    BlockingStorage storage(root, patience);
    const auto run = storage.wait<std::optional<RunRecord>>(
        "find run", [](Storage& on, Storage::Done<std::optional<RunRecord>> done) { find_run(on, std::move(done)); });
    envelope_.run = run.value().value().nonce;
    envelope_.incarnation = Incarnation{4711};
    actor_.call([&] {
      channel_ = ZmqChannel::connect(actor_, endpoint, envelope_.incarnation).value();
      channel_->on_frame([this](const PeerId&, const Bytes& frame) { hear(frame); });
    });
    Join join;
    join.world_size = 1;
    actor_.call([&] { say(join); });
    REQUIRE(testing::settle_on(actor_, [this] { return envelope_.session != Session{}; }));
  }
  ~LoneWorker() {
    actor_.call([this] { channel_.reset(); });
  }
  void leave() {
    actor_.call([this] { say(Goodbye{}); });
  }

 private:
  void say(const Message& message) {
    for (auto& frame : split_frames(encode(EnvelopedMessage{envelope_, message}), ++sent_)) {
      CHECK(channel_->send(coordinator_peer, std::move(frame)).has_value());
    }
  }
  void hear(const Bytes& frame) {
    const auto whole = joiner_.add(frame);
    if (!whole || whole->empty()) return;
    const auto message = decode_message(*whole);
    if (!message || !std::holds_alternative<Joined>(message->message)) return;
    envelope_.epoch = message->envelope.epoch;
    envelope_.session = message->envelope.session;
  }

  Actor actor_;
  Envelope envelope_;
  FrameJoiner joiner_{1 << 20};
  std::uint64_t sent_ = 0;
  std::unique_ptr<ZmqChannel> channel_;
};

TEST_CASE("a coordinator with live workers is taken over only when told so, and drains on SIGTERM",
          "[coordinator][program]") {
  const TemporaryFolder folder;
  const auto root = folder.file("root");
  Process first({"--root", root, "--grace", "60"});
  LoneWorker worker(root, first.line());
  check_refused({"--root", root}, 5, "serves 1 ranks");
  SECTION("taken over") {
    Process second({"--root", root, "--take-over"});
    CHECK_FALSE(second.line().empty());
  }
  SECTION("drained") {
    first.terminate();
    worker.leave();
    CHECK(first.wait() == 0);
  }
}

TEST_CASE("what cannot be served is refused in one line with its exit code", "[coordinator][program]") {
  const TemporaryFolder folder;
  SECTION("usage") {
    check_refused({}, 2, "--root");
    check_refused({"--root", folder.file("r"), "--deadline", "soon"}, 2, "--deadline");
    check_refused({"--root", folder.file("r"), "--bind", "127.0.0.1:99999"}, 2, "99999");
  }
  SECTION("an address that others reach") {
    check_refused({"--root", folder.file("r"), "--bind", "0.0.0.0"}, 2, "--insecure");
  }
  SECTION("a file for a root") {
    std::ofstream(folder.file("file")) << "x";
    check_refused({"--root", folder.file("file")}, 2, folder.file("file"));
  }
  SECTION("a busy port") {
    Process first({"--root", folder.file("first")});
    const auto address = first.line();
    const auto port = address.substr(address.rfind(':') + 1);
    check_refused({"--root", folder.file("r"), "--bind", "127.0.0.1:" + port}, 5, port);
  }
  CHECK_FALSE(std::filesystem::exists(folder.file("r")));
}

TEST_CASE("help is no error", "[coordinator][program]") {
  Process process({"--help"});
  CHECK(process.wait() == 0);
}

}  // namespace
}  // namespace vckpt
